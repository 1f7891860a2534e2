"""What a commit is made of, as values and bytes: roots, segments, deletion vectors, the source tree. Pure."""
