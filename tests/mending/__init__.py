"""What is wrong with safetensors files, tensor by tensor, and what is made of them."""
