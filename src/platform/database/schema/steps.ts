/**
 * The steps from the schema of 0.9.0 to that of schema.sqlite.sql and schema.postgres.sql, in their order: each is a statement for
 * both databases, or one for each where their schemas differ. A released step is never edited.
 */

/** The last step of 0.9.0. */
export const baseline = '027-destination-rules';

export const steps: Record<string, string | { sqlite: string; postgres: string }> = {
  // The reply of the host when the address bounced; null: it did not bounce, or it did before this column.
  '028-suppression-reply': 'alter table suppressions add column reply text',
  // Whether mail has its return path under the sender's domain (accounts/rows/return-paths.ts).
  '029-return-path': "alter table domains add column return_path text not null default 'none'",
  '030-return-path-names':
    "create index domains_return_path_index on domains (name) where return_path <> 'none'",
  // Its pages are open only to users with two-factor authentication.
  '031-second-factor-required':
    'alter table organizations add column requires_second_factor boolean not null default false',
  // The entries of the status that users have been notified of by mail.
  '032-notices':
    'create table notices (id text not null, entry text not null, is_open boolean not null, sent_at bigint not null, primary key (id))',
  // ACME: the certificates of our own hosts, and our accounts at authorities.
  '033-certificates': `create table certificates (host text not null, purpose text not null, chain text, private_key text,
    not_before bigint, not_after bigint, attempt_at bigint not null, failures integer not null, failing_since bigint,
    problem text, token text, key_authorization text, wanted_at bigint not null, updated_at bigint not null,
    primary key (host))`,
  '034-acme-accounts': `create table acme_accounts (directory text not null, private_key text not null,
    resume_at bigint not null, pauses integer not null, primary key (directory))`,
  '035-webhook-reason':
    "update webhooks set reason = 'disabled by its owner' where reason = 'its owner has disabled it'",
  // Whose host it is, and when the authority was first asked for it.
  '036-certificate-owner': 'alter table certificates add column org_id text',
  '037-certificate-asked': 'alter table certificates add column asked_at bigint',
  // An owner's invitations, until they are accepted (accounts/rows/open-invitations.ts).
  '038-invitations': `create table invitations (hash text not null, id text not null, org_id text not null, email text not null,
    email_key text not null, name text not null, role text not null, created_at bigint not null, expires_at bigint not null,
    primary key (hash))`,
  '039-invitation-address':
    'create unique index invitations_org_id_email_key_unique on invitations (org_id, email_key)',
  '040-invitation-end': 'create index invitations_expires_at_index on invitations (expires_at)',
  // Statistics by day and group (mail/record/rows/group-statistics.ts).
  '041-group-statistics': `create table group_statistics (org_id text not null, day bigint not null, kind text not null,
    name text not null, sent integer not null, delivered integer not null, deferred integer not null,
    bounced integer not null, expired integer not null, complained integer not null, opened integer not null, clicked integer not null, hard integer not null,
    took_0 integer not null, took_1 integer not null, took_2 integer not null, took_3 integer not null, took_4 integer not null, took_5 integer not null,
    took_6 integer not null, took_7 integer not null, took_8 integer not null, took_9 integer not null, took_10 integer not null,
    took_11 integer not null, took_12 integer not null, took_13 integer not null,
    primary key (org_id, day, kind, name))`,
  '042-group-statistics-days': 'create index group_statistics_day_index on group_statistics (day)',
  // Mail for applications (mail/received/): at most one organization receives the mail of a domain.
  '043-domain-receives': 'alter table domains add column receives boolean not null default false',
  '044-receiving-domains':
    "create unique index domains_receives_unique on domains (name) where receives and status = 'verified'",
  '045-receiving-routes': `create table receiving_routes (id text not null, org_id text not null, domain text not null,
    priority integer not null, pattern text not null, action text not null, webhook_id text, reply text, dmarc text not null,
    largest integer, created_at bigint not null, updated_at bigint not null, primary key (id))`,
  '046-receiving-routes-domain':
    'create index receiving_routes_org_id_domain_index on receiving_routes (org_id, domain)',
  '047-received-mails': `create table received_mails (id text not null, org_id text not null, domain text not null,
    route_id text not null, action text not null, webhook_id text, recipients text not null, sender text not null,
    peer text not null, helo text not null, message_id text, subject text not null, from_header text not null,
    in_reply_to text, summary text not null, size integer not null, at bigint not null, raw bytea not null,
    primary key (id))`,
  '048-received-mails-organization':
    'create index received_mails_org_id_id_index on received_mails (org_id, id)',
  // What each organization's received mail takes, so that the bound on it costs no count.
  '049-received-stores': `create table received_stores (org_id text not null, mails bigint not null, bytes bigint not null,
    primary key (org_id))`,
  // Every RCPT for a name that is not ours asks it.
  '050-receiving-domain-names': 'create index domains_receiving_index on domains (name) where receives',
  // Since when mail for a domain that receives goes elsewhere (accounts/watch-domains.ts).
  '051-receiving-record': 'alter table domains add column mx_missing_since bigint',
  // Streams (accounts/rows/streams.ts); an email, a key or a suppression without one is of the whole organization.
  '050-streams': `create table streams (org_id text not null, name text not null, title text not null, kind text not null, pool text,
    open_tracking boolean, click_tracking boolean, emails_per_day integer, used_day text, used integer not null default 0,
    color text, created_at bigint not null, primary key (org_id, name))`,
  '051-stream-pools': 'create index streams_pool_index on streams (pool) where pool is not null',
  '052-email-stream': 'alter table emails add column stream text',
  '053-key-stream': 'alter table api_keys add column stream text',
  '054-suppression-stream': "alter table suppressions add column stream text not null default ''",
  '055-suppressions-by-stream': {
    sqlite: 'drop index suppressions_org_id_address_key_unique',
    postgres: 'alter table suppressions drop constraint suppressions_org_id_address_key_unique',
  },
  '056-suppressions-unique':
    'create unique index suppressions_org_id_stream_address_key_unique on suppressions (org_id, stream, address_key)',
  // When an address was last taken off the list of a stream: links of earlier emails do not end the new subscription.
  '057-resubscriptions': `create table resubscriptions (org_id text not null, stream text not null, address_key text not null,
    at bigint not null, primary key (org_id, stream, address_key))`,
  // The days and allowances of new source addresses (mail/record/rows/warm-up-rows.ts).
  '058-warm-ups': `create table warm_ups (address text not null, receivers text not null, day integer not null,
    step integer not null, began_at bigint not null, used integer not null, deferred integer not null,
    primary key (address, receivers))`,
  // When the database was upgraded: the addresses that the server sent from until then are not new.
  '059-warm-ups-begin': {
    sqlite: `insert into warm_ups (address, receivers, day, step, began_at, used, deferred)
      values ('*', '*', 0, 0, cast((julianday('now') - 2440587.5) * 86400000 as integer), 0, 0)`,
    postgres: `insert into warm_ups (address, receivers, day, step, began_at, used, deferred)
      values ('*', '*', 0, 0, (extract(epoch from now()) * 1000)::bigint, 0, 0)`,
  },
  // Mail of a key, a stream or a tag that the rules hold or warn of (mail/record/auto-pause/).
  '060-auto-pauses': `create table auto_pauses (id text not null, org_id text not null, kind text not null, name text not null,
    state text not null, rule text not null, since bigint not null, figures text not null, mails text not null,
    released_at bigint, forgiven text, sweep text, primary key (id))`,
  '061-auto-pauses-group':
    'create unique index auto_pauses_org_id_kind_name_unique on auto_pauses (org_id, kind, name)',
  '062-auto-pauses-sweep': 'create index auto_pauses_sweep_index on auto_pauses (id) where sweep is not null',
  '063-held-groups': 'alter table organizations add column held_groups text',
  '064-auto-pause': 'alter table organizations add column auto_pause text',
  // Held by an auto-pause, and not by the operator.
  '065-auto-held': 'alter table deliveries add column auto_held boolean',
};
