"""The environments in the forms that training libraries ask for. Each module is imported by whoever uses it."""
