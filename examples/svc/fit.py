"""Fit a support vector machine and print its error: python fit.py C GAMMA."""

import sys
import warnings

from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

warnings.simplefilter("error", ConvergenceWarning)
model = make_pipeline(StandardScaler(), SVC(C=float(sys.argv[1]), gamma=float(sys.argv[2]), max_iter=1000))
try:
    print(1.0 - cross_val_score(model, *load_breast_cancer(return_X_y=True), cv=5, error_score="raise").mean())
except ConvergenceWarning:
    sys.exit("did not converge")
