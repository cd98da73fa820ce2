CREATE TABLE api_keys (
  id char(36) not null,
  org_id char(36) not null,
  label text not null,
  hash text not null,
  hint text not null,
  scopes text not null,
  created_at bigint not null,
  revoked_at bigint,
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
  foreign key(delivery_id) references deliveries(id) on delete cascade,
  primary key (id)
);

CREATE INDEX attempts_delivery_id_number_index on attempts (delivery_id, number);

CREATE TABLE credit_entries (
  id char(36) not null,
  org_id char(36) not null,
  at bigint not null,
  change bigint not null,
  reason text not null,
  email_id char(36),
  balance bigint,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE INDEX credit_entries_org_id_id_index on credit_entries (org_id, id);

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
  foreign key(email_id) references emails(id) on delete cascade,
  foreign key(org_id) references organizations(id) on delete cascade,
  foreign key(message_id) references messages(id),
  primary key (id)
);

CREATE INDEX deliveries_domain_org_id_parked_at_index on deliveries (domain, org_id, parked_at) where parked_at is not null;

CREATE INDEX deliveries_due_at_index on deliveries (due_at) where due_at is not null;

CREATE INDEX deliveries_email_id_position_index on deliveries (email_id, position);

CREATE INDEX deliveries_held_index on deliveries (id) where status = 'held';

CREATE INDEX deliveries_lease_owner_index on deliveries (lease_owner) where lease_owner is not null;

CREATE TABLE destinations (
  name text not null,
  node text not null,
  state text not null,
  at bigint not null,
  primary key (name, node)
);

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
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE UNIQUE INDEX domains_org_id_name_unique on domains (org_id, name);

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
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE INDEX emails_org_id_id_index on emails (org_id, id);

CREATE TABLE events (
  id char(36) not null,
  org_id char(36) not null,
  email_id char(36),
  type text not null,
  recipient text,
  at bigint not null,
  data text not null,
  foreign key(org_id) references organizations(id) on delete cascade,
  foreign key(email_id) references emails(id) on delete cascade,
  primary key (id)
);

CREATE INDEX events_email_id_id_index on events (email_id, id);

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

CREATE INDEX idempotency_created_at_index on idempotency (created_at);

CREATE TABLE learned (
  kind text not null,
  name text not null,
  value text not null,
  expires_at bigint not null,
  primary key (kind, name)
);

CREATE INDEX learned_expires_at_index on learned (expires_at);

CREATE TABLE messages (
  id char(36) not null,
  email_id char(36) not null,
  size integer not null,
  raw blob not null,
  foreign key(email_id) references emails(id) on delete cascade,
  primary key (id)
);

CREATE INDEX messages_email_id_index on messages (email_id);

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
  primary key (id)
);

CREATE TABLE routes (
  domain text not null,
  destination text not null,
  primary key (domain)
);

CREATE TABLE suppressions (
  id char(36) not null,
  org_id char(36) not null,
  address text not null,
  address_key text not null,
  reason text not null,
  created_at bigint not null,
  foreign key(org_id) references organizations(id) on delete cascade,
  primary key (id)
);

CREATE UNIQUE INDEX suppressions_org_id_address_key_unique on suppressions (org_id, address_key);

CREATE TABLE suspensions (
  destination text not null,
  reason text not null,
  created_at bigint not null,
  until bigint not null,
  primary key (destination)
);
