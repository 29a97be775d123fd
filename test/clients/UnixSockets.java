import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import javax.net.SocketFactory;

/** Sockets that lead to the server's Unix socket, wherever the driver wants to go: the cluster of the tests has no other. */
public class UnixSockets extends SocketFactory {
  private static class UnixSocket extends Socket {
    private SocketChannel channel;

    @Override
    public void connect(SocketAddress ignored, int timeout) throws IOException {
      channel = SocketChannel.open(UnixDomainSocketAddress.of(System.getenv("PGHOST") + "/.s.PGSQL." + System.getenv("PGPORT")));
    }

    @Override
    public InputStream getInputStream() {
      return Channels.newInputStream(channel);
    }

    @Override
    public OutputStream getOutputStream() {
      return Channels.newOutputStream(channel);
    }

    @Override
    public void close() throws IOException {
      if (channel != null) {
        channel.close();
      }
    }

    @Override
    public boolean isConnected() {
      return channel != null;
    }

    // Options of TCP.
    @Override
    public void setTcpNoDelay(boolean on) {}

    @Override
    public void setKeepAlive(boolean on) {}

    @Override
    public void setSoTimeout(int ms) {}

    @Override
    public int getSoTimeout() {
      return 0;
    }
  }

  @Override
  public Socket createSocket() {
    return new UnixSocket();
  }

  @Override
  public Socket createSocket(String host, int port) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Socket createSocket(java.net.InetAddress host, int port) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Socket createSocket(String host, int port, java.net.InetAddress local, int localPort) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Socket createSocket(java.net.InetAddress host, int port, java.net.InetAddress local, int localPort) {
    throw new UnsupportedOperationException();
  }
}
