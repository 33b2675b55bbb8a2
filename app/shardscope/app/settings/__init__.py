"""What a person set for the explorer, in a file of their own: `$XDG_CONFIG_HOME/shardscope/config.toml`.

The headless commands read no settings: the same command line gives the same answer on every machine.
"""
