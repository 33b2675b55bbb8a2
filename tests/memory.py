"""How much memory a process of a test took."""


def peak_bytes() -> int:
    """Return the most memory that this process ever had resident, in bytes.

    Not `ru_maxrss`: that one survives exec, so it can be the memory of the test run that started this process.
    """
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
