# Prints the rules of SpamAssassin that the mail of each file hits; the first argument has the envelope senders.
use Mail::SpamAssassin;
my $judge = Mail::SpamAssassin->new({ local_tests_only => 1, dont_copy_prefs => 1, userprefs_filename => '/dev/null' });
my %sender = map { split /\t/, $_, 2 } split /\n/, shift @ARGV;
for my $name (@ARGV) {
    open my $file, '<', $name; local $/; my $mail = $judge->parse("Return-Path: <$sender{$name}>\n" . <$file>);
    my $status = $judge->check($mail);
    my @found = grep { /=(.*)/ && $1 >= 0.1 } split /,/, $status->get_names_of_tests_hit_with_scores;
    print join("\t", @found) || '-', "\n";
}
