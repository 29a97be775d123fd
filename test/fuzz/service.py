"""The service of a server on this machine, as processes that get signals."""
import os
import signal
from contextlib import contextmanager

NAME = 'gpujoin_service'


def read(pid, file):
    try:
        with open(f'/proc/{pid}/{file}', encoding='ascii', errors='replace') as text:
            return text.read().strip()
    except OSError:
        return ''  # it has ended, or lives on another machine


def parent(pid):
    return read(pid, 'stat').rpartition(')')[2].split()[1:2]


def service_pids(connection):
    """Returns the processes of the service that the connection's server started. Other servers have services, too."""
    server = parent(connection.pid)
    found = [pid for pid in filter(str.isdigit, os.listdir('/proc')) if read(pid, 'comm') == NAME]
    return [int(pid) for pid in found if server and parent(*parent(pid)) == server]


def send(connection, number):
    """Sends a signal to the service and returns the number of its processes."""
    pids = service_pids(connection)
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    return len(pids)


@contextmanager
def stopped(connection):
    """A block during which the service hangs. Yields the number of its processes."""
    try:
        yield send(connection, signal.SIGSTOP)
    finally:
        send(connection, signal.SIGCONT)
