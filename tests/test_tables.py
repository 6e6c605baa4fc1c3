"""Tables of every engine, against a loop over their rows in plain Python."""

import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxmetrics as jm

for _name in ("narwhals", "polars", "pandas", "pyarrow", "duckdb", "ibis", "dask.dataframe"):
    pytest.importorskip(_name, reason="tables need the extra `test`")

import dask.dataframe as dd
import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa

pytestmark = [
    # narwhals announces that Dask moves into a package of its own.
    pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning"),
]

Columns = dict[str, list[Any]]


def _arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _dask(columns: Columns) -> Any:
    return dd.from_pandas(pd.DataFrame(columns), npartitions=3, sort=False)


ENGINES: dict[str, Callable[[Columns], Any]] = {
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "polars lazy": lambda columns: pl.LazyFrame(columns, strict=False),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas arrow": lambda columns: _arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": _arrow,
    "duckdb": lambda columns: duckdb.from_arrow(_arrow(columns)),
    "ibis": lambda columns: ibis.memtable(_arrow(columns)),
    "dask": _dask,
}
LOCAL = [name for name in ENGINES if name != "pyspark"]
