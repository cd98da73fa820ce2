<?php
// Sends one email by a bridge of Symfony's Mailer: the job is JSON on standard input, the outcome JSON on standard output.
$root = '/usr/share/php/Symfony/Component';
require "$root/Mailer/autoload.php";
require "$root/HttpClient/autoload.php";
$job = json_decode(stream_get_contents(STDIN), true);
require "$root/Mailer/Bridge/{$job['bridge']}/autoload.php";

use Symfony\Component\HttpClient\HttpClient;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;

$mail = $job['mail'];
$addresses = fn (array $list) => array_map(fn ($one) => Address::create($one), $list);
$email = (new Email())
    ->from(...$addresses([$mail['from']]))->to(...$addresses($mail['to']))->cc(...$addresses($mail['cc']))
    ->bcc(...$addresses($mail['bcc']))->replyTo(...$addresses($mail['replyTo']))
    ->subject($mail['subject'])->text($mail['text']);
foreach ($mail['headers'] as $name => $value) {
    $email->getHeaders()->addTextHeader($name, $value);
}
$email->getHeaders()->add(new TagHeader($mail['tag']));
foreach ($mail['metadata'] as $name => $value) {
    $email->getHeaders()->add(new MetadataHeader($name, $value));
}
if ($mail['html']) {
    $email->html($mail['html'])->embed('png', 'logo.png', 'image/png')->attach('Terms', 'terms of use.txt', 'text/plain');
}
// The certificate is of a test.
$client = HttpClient::create(['verify_peer' => false, 'verify_host' => false]);
$factory = "Symfony\\Component\\Mailer\\Bridge\\{$job['bridge']}\\Transport\\{$job['bridge']}TransportFactory";
try {
    $sent = (new $factory(null, $client))->create(Dsn::fromString($job['dsn']))->send($email);
    echo json_encode(['ok' => true, 'said' => $sent->getMessageId()]);
} catch (Throwable $error) {
    echo json_encode(['ok' => false, 'said' => (new ReflectionClass($error))->getShortName().': '.$error->getMessage()]);
}
