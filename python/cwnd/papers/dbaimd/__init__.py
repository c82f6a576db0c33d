"""Exploring delay-based TCP congestion control, McCullagh 2008: experiments, claims, figures."""
