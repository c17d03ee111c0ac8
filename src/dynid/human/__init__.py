"""Human bodies: anthropometric tables, a model from sex, height and weight, and priors for a given skeleton."""
