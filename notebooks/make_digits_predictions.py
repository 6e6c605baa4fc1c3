"""Write data/digits_predictions.csv: a classifier's predictions on the half of the digits that it
was not fitted to.

The data are the 1797 images of handwritten digits that come with scikit-learn (Alpaydin and Kaynak
1998, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository). The classifier is
Gaussian naive Bayes: quick, and wrong often enough to be interesting.
"""

import csv
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB


def main() -> None:
    images, digits = load_digits(return_X_y=True)
    ids = range(len(digits))
    fit_x, test_x, fit_y, test_y, _, test_ids = train_test_split(
        images, digits, ids, test_size=0.5, random_state=0, stratify=digits
    )
    probabilities = GaussianNB(var_smoothing=1e-2).fit(fit_x, fit_y).predict_proba(test_x)
    path = Path(__file__).parent / "data" / "digits_predictions.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "y_true", "y_pred", *(f"prob_{k}" for k in range(10))])
        for i, truth, row in zip(test_ids, test_y, probabilities, strict=True):
            writer.writerow([i, truth, row.argmax(), *(f"{p:.6f}" for p in row)])


if __name__ == "__main__":
    main()
