"""What can happen to a conversion, done to it many times: `make campaign`. `tests/convert/test_campaign.py` runs a small part."""
