"""PostgreSQL by its own client library, through ctypes: wherever psql runs, this does, and nothing is installed.
Values are text, as the server prints them."""
import ctypes
import ctypes.util
import os
import select
import time

CONNECTION_LOST, HANGS = 'lost', 'hangs'  # in the place of a SQLSTATE
_ROWS, _BAD, _FATAL = 2, 5, 7  # PGRES_TUPLES_OK, PGRES_BAD_RESPONSE, PGRES_FATAL_ERROR
_MOST_SECONDS = 60  # of a statement, beyond any statement_timeout


def _library():
    names = ['libpq.so.5', ctypes.util.find_library('pq'), 'libpq.dylib']
    for name in filter(None, [os.environ.get('LIBPQ')] + names):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise SystemExit('no libpq.so.5: LIBPQ=... names it')


def _declare(library):
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in [
            ('PQconnectdb', pointer, [text]), ('PQstatus', number, [pointer]), ('PQfinish', None, [pointer]),
            ('PQerrorMessage', text, [pointer]), ('PQsendQuery', number, [pointer, text]),
            ('PQsocket', number, [pointer]), ('PQconsumeInput', number, [pointer]), ('PQisBusy', number, [pointer]),
            ('PQgetResult', pointer, [pointer]), ('PQclear', None, [pointer]), ('PQresultStatus', number, [pointer]),
            ('PQresultErrorField', text, [pointer, number]), ('PQntuples', number, [pointer]),
            ('PQnfields', number, [pointer]), ('PQgetvalue', text, [pointer, number, number]),
            ('PQgetisnull', number, [pointer, number, number]), ('PQbackendPID', number, [pointer])]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_pq = _declare(_library())


class Result:
    """Rows (None where the statement has none), or the SQLSTATE and message of its error; seconds that it took."""

    def __init__(self, rows=None, state=None, message='', seconds=0.0):
        self.rows, self.state, self.message, self.seconds = rows, state, message, seconds


class Connection:
    """A session. Lost ones are noticed by `state`, and opened again by reconnect()."""

    def __init__(self, **parameters):
        self.parameters = ' '.join(f"{key}='{value}'" for key, value in parameters.items())
        self.handle = None
        self.reconnect()

    def reconnect(self):
        """Waits for a server that recovers."""
        for _ in range(60):
            self.close()
            self.handle = _pq.PQconnectdb(self.parameters.encode())
            if _pq.PQstatus(self.handle) == 0:
                self.pid = _pq.PQbackendPID(self.handle)
                return
            time.sleep(0.5)
        raise SystemExit('no server: ' + _pq.PQerrorMessage(self.handle).decode())

    def close(self):
        if self.handle:
            _pq.PQfinish(self.handle)
        self.handle = None

    def run(self, statement):
        """Runs a statement; of several the last result that counts."""
        began = time.monotonic()
        if not _pq.PQsendQuery(self.handle, statement.encode()):
            return self._lost(began)
        last = Result()
        while True:
            while _pq.PQisBusy(self.handle):
                left = began + _MOST_SECONDS - time.monotonic()
                if left <= 0:
                    return Result(state=HANGS, message='no answer', seconds=_MOST_SECONDS)
                if select.select([_pq.PQsocket(self.handle)], [], [], left)[0]:
                    if not _pq.PQconsumeInput(self.handle):
                        return self._lost(began)
            result = _pq.PQgetResult(self.handle)
            if not result:
                break
            last = self._read(result)
            _pq.PQclear(result)
        if _pq.PQstatus(self.handle) != 0:
            return self._lost(began)
        last.seconds = time.monotonic() - began
        return last

    def must(self, statement):
        """Rows of a statement that has to work."""
        result = self.run(statement)
        if result.state:
            raise SystemExit(f'{result.state} {result.message}\n{statement}')
        return result.rows

    def _lost(self, began):
        message = _pq.PQerrorMessage(self.handle).decode(errors='replace').strip()
        return Result(state=CONNECTION_LOST, message=message, seconds=time.monotonic() - began)

    @staticmethod
    def _read(result):
        status = _pq.PQresultStatus(result)
        if status in (_BAD, _FATAL):
            state, message = (_pq.PQresultErrorField(result, ord(field)) or b'' for field in 'CM')
            return Result(state=state.decode() or CONNECTION_LOST, message=message.decode(errors='replace'))
        if status != _ROWS:
            return Result()
        value, is_null = _pq.PQgetvalue, _pq.PQgetisnull
        columns = range(_pq.PQnfields(result))
        return Result([tuple(value(result, row, column).decode() if not is_null(result, row, column) else None
                             for column in columns) for row in range(_pq.PQntuples(result))])
