# Opens the socket of systemd (sd_notify(3)), then becomes the program of its arguments, which finds the descriptor in NOTIFY_FD.
# Node has no datagram sockets of this kind. Perl is part of every Debian system, and takes three milliseconds once.
use Socket;

# Descriptors up to this one stay open in the program.
$^F = 9;
# An abstract address begins with a null byte.
(my $path = delete $ENV{NOTIFY_SOCKET}) =~ s/^\@/\0/;
if (socket(NOTIFY, PF_UNIX, SOCK_DGRAM, 0) && connect(NOTIFY, pack_sockaddr_un($path))) {
  $ENV{NOTIFY_FD} = fileno(NOTIFY);
} else {
  warn "postern: systemd cannot be told that the server is ready: $!\n";
}
exec { $ARGV[0] } @ARGV or die "postern: $ARGV[0]: $!\n";
