"""Ports of this machine that are one test's alone until its process ends, also while nothing listens on them: servers of tests go away
and come back on the port that their clients know, and other tests run meanwhile.

A port is taken by the name of a socket, which the system lets go with the process. It is none of those that the system gives to whoever
asks for any, so no connection and no other server gets it in the time between."""
import random
import socket

FIRST, LAST = 10000, 65535
held = {}


def given_by_the_system():
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low, high = map(int, file.read().split())
            return low, high
    except OSError:
        return 32768, 60999


def candidates():
    low, high = given_by_the_system()
    ports = [port for port in range(FIRST, LAST + 1) if not low <= port <= high]
    random.Random().shuffle(ports)  # seeds of tests stay theirs
    return ports or [0] * 100  # of none to spare any will do


def take(port):
    """The port, if nobody has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        with socket.create_server(("127.0.0.1", port)) as listener:
            port = listener.getsockname()[1]
            name.bind("\0tarn-test-port-%d" % port)
    except OSError:
        name.close()
        return None
    held[port] = name
    return port


def free_port():
    return next(port for port in map(take, candidates()) if port)
