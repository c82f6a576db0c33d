"""Removing Exponential Backoff from TCP, Mondal & Kuzmanovic 2008: experiments, claims, figures."""
