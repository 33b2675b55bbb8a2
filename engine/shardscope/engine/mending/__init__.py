"""What is wrong with safetensors files, and what is written instead: no file is opened here but through what formats read with."""
