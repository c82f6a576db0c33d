"""I. A. Qazi, L. L. H. Andrew, T. Znati, "Congestion Control using Efficient Explicit Feedback"."""
