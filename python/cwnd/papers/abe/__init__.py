"""Alternative Backoff, Khademi et al. 2017: experiments, claims, figures."""
