"""What a release is made of beside sdist and wheel."""
