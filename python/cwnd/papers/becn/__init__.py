"""BECN for Congestion Control, Akujobi et al. 2002: experiments, claims, figures."""
