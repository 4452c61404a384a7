"""The real services that the tests of images run against, started here and torn down again."""
