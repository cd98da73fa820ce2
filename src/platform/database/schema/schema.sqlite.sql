CREATE TABLE acme_accounts (
  directory text not null,
  private_key text not null,
  resume_at bigint not null,
  pauses integer not null,
  primary key (directory)
);

CREATE TABLE api_keys (
  id char(36) not null,
  org_id char(36) not null,
  label text not null,
  hash text not null,
  hint text not null,
  scopes text not null,
  created_at bigint not null,
  revoked_at bigint,
  ends_at bigint,
  used_at bigint,
  strict boolean not null default '0',
  is_test boolean not null default '0',
  stream text,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE UNIQUE INDEX api_keys_hash_unique on api_keys (hash);

CREATE INDEX api_keys_org_id_index on api_keys (org_id);

CREATE TABLE attempts (
  id char(36) not null,
  delivery_id char(36) not null,
  number integer not null,
  started_at bigint not null,
  ended_at bigint not null,
  verdict text not null,
  reply text,
  mx text,
  tls text,
  transcript text not null,
  packed blob,
  foreign key(delivery_id) references deliveries(id) on delete cascade,
  primary key (id)
);

CREATE INDEX attempts_delivery_id_number_index on attempts (delivery_id, number);

CREATE TABLE auto_pauses (
  id text not null,
  org_id text not null,
  kind text not null,
  name text not null,
  state text not null,
  rule text not null,
  since bigint not null,
  figures text not null,
  mails text not null,
  released_at bigint,
  forgiven text,
  sweep text,
  primary key (id)
);

CREATE UNIQUE INDEX auto_pauses_org_id_kind_name_unique on auto_pauses (org_id, kind, name);

CREATE INDEX auto_pauses_sweep_index on auto_pauses (id) where sweep is not null;

CREATE TABLE certificates (
  host text not null,
  purpose text not null,
  chain text,
  private_key text,
  not_before bigint,
  not_after bigint,
  attempt_at bigint not null,
  failures integer not null,
  failing_since bigint,
  problem text,
  token text,
  key_authorization text,
  wanted_at bigint not null,
  updated_at bigint not null,
  org_id text,
  asked_at bigint,
  primary key (host)
);

CREATE TABLE credit_entries (
  id char(36) not null,
  org_id char(36) not null,
  at bigint not null,
  change bigint not null,
  reason text not null,
  email_id char(36),
  balance bigint,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (org_id, id)
) without rowid;

CREATE TABLE daily_usage (
  org_id char(36) not null,
  day text not null,
  requests integer not null default '0',
  emails integer not null default '0',
  second_since bigint not null default '0',
  second_requests integer not null default '0',
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (org_id, day)
);

CREATE TABLE deliveries (
  id char(36) not null,
  email_id char(36) not null,
  org_id char(36) not null,
  message_id char(36),
  position integer not null,
  recipient text not null,
  domain text not null,
  status text not null,
  attempts integer not null default '0',
  due_at bigint,
  lease_owner text,
  created_at bigint not null,
  expires_at bigint not null,
  updated_at bigint not null,
  delivered_at bigint,
  last_reply text,
  mx text,
  tls text,
  bounce text,
  open_count integer not null default '0',
  open_first_at bigint,
  open_last_at bigint,
  open_scans integer not null default '0',
  click_count integer not null default '0',
  click_first_at bigint,
  click_last_at bigint,
  click_scans integer not null default '0',
  parked_at bigint,
  kind text not null default 'to',
  has_deadline boolean not null default '0',
  packed blob,
  auto_held boolean,
  foreign key(email_id) references emails(id) on delete cascade,
  foreign key(org_id) references organizations(id) on delete cascade,
  foreign key(message_id) references messages(id),
  primary key (id)
);

CREATE INDEX deliveries_domain_org_id_due_at_index on deliveries (domain, org_id, due_at) where status in ('queued', 'deferred');

CREATE INDEX deliveries_due_at_index on deliveries (due_at) where status in ('queued', 'deferred');

CREATE INDEX deliveries_email_id_position_index on deliveries (email_id, position);

CREATE INDEX deliveries_expires_at_index on deliveries (expires_at) where status in ('queued', 'deferred');

CREATE INDEX deliveries_held_index on deliveries (id) where status = 'held';

CREATE INDEX deliveries_lease_owner_index on deliveries (lease_owner) where lease_owner is not null;

CREATE INDEX deliveries_scheduled_index on deliveries (due_at, id) where status = 'scheduled';

CREATE TABLE destination_rules (
  destination text not null,
  kind text not null,
  per_minute integer,
  reason text not null,
  created_at bigint not null,
  until bigint,
  primary key (destination, kind)
);

CREATE TABLE destinations (
  name text not null,
  node text not null,
  state text not null,
  at bigint not null,
  primary key (name, node)
);

CREATE TABLE dkim_keys (
  id char(36) not null,
  domain_id char(36) not null,
  algorithm text not null,
  selector text not null,
  public_key text not null,
  private_key text,
  status text not null,
  created_at bigint not null,
  checked_at bigint,
  keep_until bigint,
  foreign key(domain_id) references domains(id) on delete cascade,
  primary key (id)
);

CREATE UNIQUE INDEX dkim_keys_domain_id_selector_unique on dkim_keys (domain_id, selector);

CREATE UNIQUE INDEX dkim_keys_live_unique on dkim_keys (domain_id, algorithm, status) where status <> 'retired';

CREATE INDEX dkim_keys_watched_index on dkim_keys (id) where status <> 'signing';

CREATE TABLE domain_reports (
  id char(36) not null,
  kind text not null,
  domain text not null,
  reporter text not null,
  report_id text not null,
  begins_at bigint not null,
  ends_at bigint not null,
  received_at bigint not null,
  report text not null,
  primary key (id)
);

CREATE INDEX domain_reports_domain_id_index on domain_reports (domain, id);

CREATE UNIQUE INDEX domain_reports_kind_domain_reporter_report_id_unique on domain_reports (kind, domain, reporter, report_id);

CREATE TABLE domains (
  id char(36) not null,
  org_id char(36) not null,
  name text not null,
  status text not null,
  dkim_selector text not null,
  dkim_public_key text not null,
  dkim_private_key text not null,
  open_tracking boolean not null default '0',
  click_tracking boolean not null default '0',
  tracking_host text,
  created_at bigint not null,
  verified_at bigint,
  checked_at bigint,
  tls text not null default 'opportunistic',
  check_at bigint,
  failures integer not null default '0',
  failing_since bigint,
  return_path text not null default 'none',
  receives boolean not null default false,
  mx_missing_since bigint,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE INDEX domains_check_at_id_index on domains (check_at, id) where check_at is not null;

CREATE UNIQUE INDEX domains_org_id_name_unique on domains (org_id, name);

CREATE UNIQUE INDEX domains_receives_unique on domains (name) where receives and status = 'verified';

CREATE INDEX domains_receiving_index on domains (name) where receives;

CREATE INDEX domains_return_path_index on domains (name) where return_path <> 'none';

CREATE TABLE emails (
  id char(36) not null,
  org_id char(36) not null,
  key_id char(36),
  message_id text not null,
  sender text not null,
  reply_to text,
  subject text not null,
  recipients text not null,
  tags text not null,
  tracking text not null,
  credits integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  tls text not null default 'opportunistic',
  scheduled_at bigint,
  wallet_credits integer not null default '0',
  dialect text,
  is_test boolean not null default '0',
  stream text,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE INDEX emails_org_id_id_index on emails (org_id, id);

CREATE INDEX emails_test_index on emails (org_id, id) where is_test;

CREATE TABLE event_readers (
  name text not null,
  position bigint not null,
  primary key (name)
);

CREATE TABLE events (
  position integer not null primary key autoincrement,
  id char(36) not null,
  org_id char(36) not null,
  email_id char(36),
  type text not null,
  recipient text,
  at bigint not null,
  data text not null,
  packed blob,
  foreign key(org_id) references organizations(id) on delete cascade,
  foreign key(email_id) references emails(id) on delete cascade
);

CREATE INDEX events_email_id_position_index on events (email_id);

CREATE UNIQUE INDEX events_id_unique on events (id);

CREATE INDEX events_org_id_position_index on events (org_id);

CREATE TABLE group_statistics (
  org_id text not null,
  day bigint not null,
  kind text not null,
  name text not null,
  sent integer not null,
  delivered integer not null,
  deferred integer not null,
  bounced integer not null,
  expired integer not null,
  complained integer not null,
  opened integer not null,
  clicked integer not null,
  hard integer not null,
  took_0 integer not null,
  took_1 integer not null,
  took_2 integer not null,
  took_3 integer not null,
  took_4 integer not null,
  took_5 integer not null,
  took_6 integer not null,
  took_7 integer not null,
  took_8 integer not null,
  took_9 integer not null,
  took_10 integer not null,
  took_11 integer not null,
  took_12 integer not null,
  took_13 integer not null,
  primary key (org_id, day, kind, name)
);

CREATE INDEX group_statistics_day_index on group_statistics (day);

CREATE TABLE idempotency (
  org_id char(36) not null,
  kind text not null,
  key text not null,
  request_hash text not null,
  response text not null,
  email_id char(36) not null,
  created_at bigint not null,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (org_id, kind, key)
);

CREATE INDEX idempotency_kind_created_at_index on idempotency (kind, created_at);

CREATE TABLE inbound_mails (
  id char(36) not null,
  delivery_id char(36),
  kind text not null,
  sender text not null,
  recipient text not null,
  peer text not null,
  at bigint not null,
  reading text not null,
  size integer not null,
  raw blob not null,
  foreign key(delivery_id) references deliveries(id) on delete cascade,
  primary key (id)
);

CREATE INDEX inbound_mails_delivery_id_index on inbound_mails (delivery_id);

CREATE INDEX inbound_mails_letters_index on inbound_mails (id) where delivery_id is null;

CREATE TABLE invitations (
  hash text not null,
  id text not null,
  org_id text not null,
  email text not null,
  email_key text not null,
  name text not null,
  role text not null,
  created_at bigint not null,
  expires_at bigint not null,
  primary key (hash)
);

CREATE INDEX invitations_expires_at_index on invitations (expires_at);

CREATE UNIQUE INDEX invitations_org_id_email_key_unique on invitations (org_id, email_key);

CREATE TABLE learned (
  kind text not null,
  name text not null,
  value text not null,
  expires_at bigint not null,
  primary key (kind, name)
);

CREATE INDEX learned_expires_at_index on learned (expires_at);

CREATE TABLE memberships (
  user_id char(36) not null,
  org_id char(36) not null,
  role text not null,
  created_at bigint not null,
  foreign key(user_id) references users(id) on delete cascade,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (user_id, org_id)
);

CREATE INDEX memberships_org_id_index on memberships (org_id);

CREATE TABLE message_bases (
  email_id char(36) not null,
  raw blob not null,
  primary key (email_id)
);

CREATE TABLE messages (
  id char(36) not null,
  email_id char(36) not null,
  size integer not null,
  raw blob not null,
  is_patch boolean not null default '0',
  foreign key(email_id) references emails(id) on delete cascade,
  primary key (id)
);

CREATE INDEX messages_email_id_index on messages (email_id) where size > 0;

CREATE TABLE nodes (
  node text not null,
  members text not null,
  at bigint not null,
  version text,
  sends boolean not null default '1',
  primary key (node)
);

CREATE TABLE notices (
  id text not null,
  entry text not null,
  is_open boolean not null,
  sent_at bigint not null,
  primary key (id)
);

CREATE TABLE one_time_tokens (
  hash text not null,
  purpose text not null,
  user_id char(36),
  created_at bigint not null,
  expires_at bigint not null,
  foreign key(user_id) references users(id) on delete cascade,
  primary key (hash)
);

CREATE INDEX one_time_tokens_expires_at_index on one_time_tokens (expires_at);

CREATE INDEX one_time_tokens_user_id_index on one_time_tokens (user_id);

CREATE TABLE organizations (
  id char(36) not null,
  name text not null,
  created_at bigint not null,
  quota_limit bigint,
  quota_used bigint not null default '0',
  quota_since bigint not null,
  wallet bigint not null default '0',
  ledger_total bigint not null default '0',
  requests_per_second integer,
  requests_per_day integer,
  emails_per_day integer,
  told_low boolean not null default '0',
  told_exhausted boolean not null default '0',
  tls text not null default 'opportunistic',
  pool text,
  paused_at bigint,
  paused_reason text,
  requires_second_factor boolean not null default false,
  held_groups text,
  auto_pause text,
  primary key (id)
);

CREATE UNIQUE INDEX organizations_name_unique on organizations (name);

CREATE INDEX organizations_paused_at_id_index on organizations (paused_at, id) where paused_at is not null;

CREATE INDEX organizations_pool_id_index on organizations (pool, id) where pool is not null;

CREATE TABLE received_mails (
  id text not null,
  org_id text not null,
  domain text not null,
  route_id text not null,
  action text not null,
  webhook_id text,
  recipients text not null,
  sender text not null,
  peer text not null,
  helo text not null,
  message_id text,
  subject text not null,
  from_header text not null,
  in_reply_to text,
  summary text not null,
  size integer not null,
  at bigint not null,
  raw bytea not null,
  primary key (id)
);

CREATE INDEX received_mails_org_id_id_index on received_mails (org_id, id);

CREATE TABLE received_stores (
  org_id text not null,
  mails bigint not null,
  bytes bigint not null,
  primary key (org_id)
);

CREATE TABLE receiving_routes (
  id text not null,
  org_id text not null,
  domain text not null,
  priority integer not null,
  pattern text not null,
  action text not null,
  webhook_id text,
  reply text,
  dmarc text not null,
  largest integer,
  created_at bigint not null,
  updated_at bigint not null,
  primary key (id)
);

CREATE INDEX receiving_routes_org_id_domain_index on receiving_routes (org_id, domain);

CREATE TABLE recovery_codes (
  user_id char(36) not null,
  hash text not null,
  foreign key(user_id) references users(id) on delete cascade,
  primary key (user_id, hash)
);

CREATE TABLE resubscriptions (
  org_id text not null,
  stream text not null,
  address_key text not null,
  at bigint not null,
  primary key (org_id, stream, address_key)
);

CREATE TABLE routes (
  domain text not null,
  destination text not null,
  primary key (domain)
);

CREATE TABLE sessions (
  id char(36) not null,
  hash text not null,
  user_id char(36) not null,
  address text not null,
  agent text not null,
  created_at bigint not null,
  seen_at bigint not null,
  expires_at bigint not null,
  foreign key(user_id) references users(id) on delete cascade,
  primary key (id)
);

CREATE INDEX sessions_expires_at_index on sessions (expires_at);

CREATE UNIQUE INDEX sessions_hash_unique on sessions (hash);

CREATE INDEX sessions_user_id_index on sessions (user_id);

CREATE TABLE soft_bounces (
  id char(36),
  org_id char(36) not null,
  address_key text not null,
  email_id char(36) not null,
  created_at bigint not null,
  bounced_at bigint,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE INDEX soft_bounces_org_id_address_key_index on soft_bounces (org_id, address_key);

CREATE TABLE source_pools (
  node text not null,
  pool text not null,
  at bigint not null,
  primary key (node, pool)
);

CREATE TABLE statistics (
  org_id char(36) not null,
  hour bigint not null,
  sent integer not null,
  delivered integer not null,
  deferred integer not null,
  bounced integer not null,
  expired integer not null,
  complained integer not null,
  opened integer not null,
  clicked integer not null,
  took_0 integer not null,
  took_1 integer not null,
  took_2 integer not null,
  took_3 integer not null,
  took_4 integer not null,
  took_5 integer not null,
  took_6 integer not null,
  took_7 integer not null,
  took_8 integer not null,
  took_9 integer not null,
  took_10 integer not null,
  took_11 integer not null,
  took_12 integer not null,
  took_13 integer not null,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (org_id, hour)
);

CREATE INDEX statistics_hour_index on statistics (hour);

CREATE TABLE streams (
  org_id text not null,
  name text not null,
  title text not null,
  kind text not null,
  pool text,
  open_tracking boolean,
  click_tracking boolean,
  emails_per_day integer,
  used_day text,
  used integer not null default 0,
  color text,
  created_at bigint not null,
  primary key (org_id, name)
);

CREATE INDEX streams_pool_index on streams (pool) where pool is not null;

CREATE TABLE suppressions (
  id char(36) not null,
  org_id char(36) not null,
  address text not null,
  address_key text not null,
  reason text not null,
  created_at bigint not null,
  reply text,
  stream text not null default '',
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE UNIQUE INDEX suppressions_org_id_stream_address_key_unique on suppressions (org_id, stream, address_key);

CREATE TABLE suspensions (
  destination text not null,
  reason text not null,
  created_at bigint not null,
  until bigint not null,
  primary key (destination)
);

CREATE TABLE tls_results (
  day integer not null,
  domain text not null,
  policy text not null,
  host text not null,
  failure text not null,
  sessions bigint not null,
  policy_text text not null,
  address text,
  source text,
  reason text,
  due_at bigint not null,
  primary key (day, domain, policy, host, failure)
);

CREATE INDEX tls_results_due_at_index on tls_results (due_at);

CREATE TABLE users (
  id char(36) not null,
  email text not null,
  email_key text not null,
  name text not null,
  password text,
  totp_secret text,
  totp_step bigint,
  operator boolean not null default '0',
  created_at bigint not null,
  signed_in_at bigint,
  disabled_at bigint,
  primary key (id)
);

CREATE UNIQUE INDEX users_email_key_unique on users (email_key);

CREATE TABLE warm_ups (
  address text not null,
  receivers text not null,
  day integer not null,
  step integer not null,
  began_at bigint not null,
  used integer not null,
  deferred integer not null,
  primary key (address, receivers)
);

CREATE TABLE webhook_attempts (
  id char(36) not null,
  message_id char(36) not null,
  webhook_id char(36) not null,
  number integer not null,
  started_at bigint not null,
  duration integer not null,
  url text not null,
  status integer,
  answer text,
  error text,
  foreign key(message_id) references webhook_messages(id) on delete cascade,
  foreign key(webhook_id) references webhooks(id) on delete cascade,
  primary key (id)
);

CREATE INDEX webhook_attempts_message_id_index on webhook_attempts (message_id);

CREATE INDEX webhook_attempts_webhook_id_id_index on webhook_attempts (webhook_id, id);

CREATE TABLE webhook_messages (
  id char(36) not null,
  webhook_id char(36) not null,
  event_id char(36) not null,
  type text not null,
  position bigint not null,
  lane char(36),
  status text not null,
  attempts integer not null default '0',
  due_at bigint,
  lease_owner text,
  created_at bigint not null,
  updated_at bigint not null,
  foreign key(webhook_id) references webhooks(id) on delete cascade,
  primary key (id)
);

CREATE INDEX webhook_messages_created_at_index on webhook_messages (created_at);

CREATE INDEX webhook_messages_failed_index on webhook_messages (webhook_id, event_id) where status = 'failed';

CREATE INDEX webhook_messages_lease_owner_index on webhook_messages (lease_owner) where lease_owner is not null;

CREATE INDEX webhook_messages_webhook_id_due_at_position_index on webhook_messages (webhook_id, due_at, position) where due_at is not null;

CREATE UNIQUE INDEX webhook_messages_webhook_id_event_id_unique on webhook_messages (webhook_id, event_id);

CREATE INDEX webhook_messages_webhook_id_lane_position_index on webhook_messages (webhook_id, lane, position) where lane is not null;

CREATE TABLE webhooks (
  id char(36) not null,
  org_id char(36) not null,
  url text not null,
  types text not null,
  status text not null,
  reason text,
  secret text not null,
  old_secret text,
  old_secret_until bigint,
  after_position bigint not null,
  failing_since bigint,
  paused_until bigint,
  created_at bigint not null,
  updated_at bigint not null,
  format text not null default 'standard',
  public_key text,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE INDEX webhooks_active_index on webhooks (id) where status = 'active';

CREATE INDEX webhooks_org_id_index on webhooks (org_id);
