# Prints what MIME::Parser remarks on the mail of each file.
use MIME::Parser;
for my $name (@ARGV) {
    my $parser = MIME::Parser->new; $parser->output_to_core(1); $parser->extract_nested_messages(1);
    my $mail = eval { $parser->parse_open($name) };
    my @found = $mail ? ($parser->results->warnings, $parser->results->errors) : ("$@");
    s/\s+/ /g for @found;
    print join("\t", @found) || '-', "\n";
}
