CREATE SEQUENCE events_position_seq;

CREATE OR REPLACE FUNCTION events_announce()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
   begin
     perform pg_advisory_xact_lock_shared((25974::bigint << 48) | last_value)
       from events_position_seq;
     return null;
   end $function$;

CREATE OR REPLACE FUNCTION events_settled()
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
   declare given bigint; locked bigint;
   begin
     -- In this order: who locks later than the second look was given more than the first one saw.
     select last_value into given from events_position_seq;
     select min(((classid::bigint << 32) | objid::bigint) & ((1::bigint << 48) - 1)) into locked
       from pg_locks
       where locktype = 'advisory' and objsubid = 1 and classid::bigint >> 16 = 25974
         and database = (select oid from pg_database where datname = current_database());
     return least(given, locked);
   end $function$;

CREATE TABLE acme_accounts (
  directory text NOT NULL,
  private_key text NOT NULL,
  resume_at bigint NOT NULL,
  pauses integer NOT NULL,
  CONSTRAINT acme_accounts_pkey PRIMARY KEY (directory)
);

CREATE TABLE attempts (
  id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  number integer NOT NULL,
  started_at bigint NOT NULL,
  ended_at bigint NOT NULL,
  verdict text NOT NULL,
  reply text,
  mx text,
  tls text,
  transcript text NOT NULL,
  packed bytea,
  CONSTRAINT attempts_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX attempts_delivery_id_number_index ON attempts USING btree (delivery_id, number);

CREATE TABLE attempts_first PARTITION OF attempts FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

CREATE TABLE auto_pauses (
  id text NOT NULL,
  org_id text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  state text NOT NULL,
  rule text NOT NULL,
  since bigint NOT NULL,
  figures text NOT NULL,
  mails text NOT NULL,
  released_at bigint,
  forgiven text,
  sweep text,
  CONSTRAINT auto_pauses_pkey PRIMARY KEY (id)
);
CREATE INDEX auto_pauses_sweep_index ON auto_pauses USING btree (id) WHERE (sweep IS NOT NULL);
CREATE UNIQUE INDEX auto_pauses_org_id_kind_name_unique ON auto_pauses USING btree (org_id, kind, name);

CREATE TABLE certificates (
  host text NOT NULL,
  purpose text NOT NULL,
  chain text,
  private_key text,
  not_before bigint,
  not_after bigint,
  attempt_at bigint NOT NULL,
  failures integer NOT NULL,
  failing_since bigint,
  problem text,
  token text,
  key_authorization text,
  wanted_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  org_id text,
  asked_at bigint,
  CONSTRAINT certificates_pkey PRIMARY KEY (host)
);

CREATE TABLE destination_rules (
  destination text NOT NULL,
  kind text NOT NULL,
  per_minute integer,
  reason text NOT NULL,
  created_at bigint NOT NULL,
  until bigint,
  CONSTRAINT destination_rules_pkey PRIMARY KEY (destination, kind)
);

CREATE TABLE destinations (
  name text NOT NULL,
  node text NOT NULL,
  state text NOT NULL,
  at bigint NOT NULL,
  CONSTRAINT destinations_pkey PRIMARY KEY (name, node)
);

CREATE TABLE domain_reports (
  id uuid NOT NULL,
  kind text NOT NULL,
  domain text NOT NULL,
  reporter text NOT NULL,
  report_id text NOT NULL,
  begins_at bigint NOT NULL,
  ends_at bigint NOT NULL,
  received_at bigint NOT NULL,
  report text NOT NULL,
  CONSTRAINT domain_reports_pkey PRIMARY KEY (id),
  CONSTRAINT domain_reports_kind_domain_reporter_report_id_unique UNIQUE (kind, domain, reporter, report_id)
);
CREATE INDEX domain_reports_domain_id_index ON domain_reports USING btree (domain, id);

CREATE TABLE emails (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  key_id uuid,
  message_id text NOT NULL,
  sender text NOT NULL,
  reply_to text,
  subject text NOT NULL,
  recipients text NOT NULL,
  tags text NOT NULL,
  tracking text NOT NULL,
  credits integer NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  tls text NOT NULL DEFAULT 'opportunistic'::text,
  scheduled_at bigint,
  wallet_credits integer NOT NULL DEFAULT 0,
  dialect text,
  is_test boolean NOT NULL DEFAULT false,
  stream text,
  CONSTRAINT emails_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX emails_org_id_id_index ON emails USING btree (org_id, id);
CREATE INDEX emails_test_index ON emails USING btree (org_id, id) WHERE is_test;

CREATE TABLE emails_first PARTITION OF emails FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

CREATE TABLE event_readers (
  name text NOT NULL,
  position bigint NOT NULL,
  CONSTRAINT event_readers_pkey PRIMARY KEY (name)
);

CREATE TABLE events (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  email_id uuid,
  type text NOT NULL,
  recipient text,
  at bigint NOT NULL,
  data text NOT NULL,
  position bigint NOT NULL DEFAULT nextval('events_position_seq'::regclass),
  packed bytea
) PARTITION BY RANGE ("position");
CREATE INDEX events_email_id_position_index ON events USING btree (email_id, "position");
CREATE INDEX events_org_id_position_index ON events USING btree (org_id, "position");
CREATE TRIGGER events_announce BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION events_announce();
CREATE UNIQUE INDEX events_position_unique ON events USING btree ("position");

CREATE TABLE events_first PARTITION OF events (
  CONSTRAINT events_first_pkey PRIMARY KEY (id)
) FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

CREATE TABLE group_statistics (
  org_id text NOT NULL,
  day bigint NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  sent integer NOT NULL,
  delivered integer NOT NULL,
  deferred integer NOT NULL,
  bounced integer NOT NULL,
  expired integer NOT NULL,
  complained integer NOT NULL,
  opened integer NOT NULL,
  clicked integer NOT NULL,
  hard integer NOT NULL,
  took_0 integer NOT NULL,
  took_1 integer NOT NULL,
  took_2 integer NOT NULL,
  took_3 integer NOT NULL,
  took_4 integer NOT NULL,
  took_5 integer NOT NULL,
  took_6 integer NOT NULL,
  took_7 integer NOT NULL,
  took_8 integer NOT NULL,
  took_9 integer NOT NULL,
  took_10 integer NOT NULL,
  took_11 integer NOT NULL,
  took_12 integer NOT NULL,
  took_13 integer NOT NULL,
  CONSTRAINT group_statistics_pkey PRIMARY KEY (org_id, day, kind, name)
);
CREATE INDEX group_statistics_day_index ON group_statistics USING btree (day);

CREATE TABLE invitations (
  hash text NOT NULL,
  id text NOT NULL,
  org_id text NOT NULL,
  email text NOT NULL,
  email_key text NOT NULL,
  name text NOT NULL,
  role text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  CONSTRAINT invitations_pkey PRIMARY KEY (hash)
);
CREATE INDEX invitations_expires_at_index ON invitations USING btree (expires_at);
CREATE UNIQUE INDEX invitations_org_id_email_key_unique ON invitations USING btree (org_id, email_key);

CREATE TABLE learned (
  kind text NOT NULL,
  name text NOT NULL,
  value text NOT NULL,
  expires_at bigint NOT NULL,
  CONSTRAINT learned_pkey PRIMARY KEY (kind, name)
);
CREATE INDEX learned_expires_at_index ON learned USING btree (expires_at);

CREATE TABLE message_bases (
  email_id uuid NOT NULL,
  raw bytea NOT NULL,
  CONSTRAINT message_bases_pkey PRIMARY KEY (email_id)
);

CREATE TABLE messages (
  id uuid NOT NULL,
  email_id uuid NOT NULL,
  size integer NOT NULL,
  raw bytea NOT NULL,
  is_patch boolean NOT NULL DEFAULT false,
  CONSTRAINT messages_pkey PRIMARY KEY (id)
);
CREATE INDEX messages_email_id_index ON messages USING btree (email_id) WHERE (size > 0);

CREATE TABLE nodes (
  node text NOT NULL,
  members text NOT NULL,
  at bigint NOT NULL,
  version text,
  sends boolean NOT NULL DEFAULT true,
  CONSTRAINT nodes_pkey PRIMARY KEY (node)
);

CREATE TABLE notices (
  id text NOT NULL,
  entry text NOT NULL,
  is_open boolean NOT NULL,
  sent_at bigint NOT NULL,
  CONSTRAINT notices_pkey PRIMARY KEY (id)
);

CREATE TABLE organizations (
  id uuid NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL,
  quota_limit bigint,
  quota_used bigint NOT NULL DEFAULT '0'::bigint,
  quota_since bigint NOT NULL,
  wallet bigint NOT NULL DEFAULT '0'::bigint,
  ledger_total bigint NOT NULL DEFAULT '0'::bigint,
  requests_per_second integer,
  requests_per_day integer,
  emails_per_day integer,
  told_low boolean NOT NULL DEFAULT false,
  told_exhausted boolean NOT NULL DEFAULT false,
  tls text NOT NULL DEFAULT 'opportunistic'::text,
  pool text,
  paused_at bigint,
  paused_reason text,
  requires_second_factor boolean NOT NULL DEFAULT false,
  held_groups text,
  auto_pause text,
  CONSTRAINT organizations_pkey PRIMARY KEY (id),
  CONSTRAINT organizations_name_unique UNIQUE (name)
);
CREATE INDEX organizations_paused_at_id_index ON organizations USING btree (paused_at, id) WHERE (paused_at IS NOT NULL);
CREATE INDEX organizations_pool_id_index ON organizations USING btree (pool, id) WHERE (pool IS NOT NULL);

CREATE TABLE api_keys (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  label text NOT NULL,
  hash text NOT NULL,
  hint text NOT NULL,
  scopes text NOT NULL,
  created_at bigint NOT NULL,
  revoked_at bigint,
  ends_at bigint,
  used_at bigint,
  strict boolean NOT NULL DEFAULT false,
  is_test boolean NOT NULL DEFAULT false,
  stream text,
  CONSTRAINT api_keys_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT api_keys_pkey PRIMARY KEY (id),
  CONSTRAINT api_keys_hash_unique UNIQUE (hash)
);
CREATE INDEX api_keys_org_id_index ON api_keys USING btree (org_id);

CREATE TABLE credit_entries (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  at bigint NOT NULL,
  change bigint NOT NULL,
  reason text NOT NULL,
  email_id uuid,
  balance bigint,
  CONSTRAINT credit_entries_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT credit_entries_pkey PRIMARY KEY (org_id, id)
);

CREATE TABLE daily_usage (
  org_id uuid NOT NULL,
  day text NOT NULL,
  requests integer NOT NULL DEFAULT 0,
  emails integer NOT NULL DEFAULT 0,
  second_since bigint NOT NULL DEFAULT '0'::bigint,
  second_requests integer NOT NULL DEFAULT 0,
  CONSTRAINT daily_usage_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT daily_usage_pkey PRIMARY KEY (org_id, day)
);

CREATE TABLE deliveries (
  id uuid NOT NULL,
  email_id uuid NOT NULL,
  org_id uuid NOT NULL,
  message_id uuid,
  position integer NOT NULL,
  recipient text NOT NULL,
  domain text NOT NULL,
  status text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  due_at bigint,
  lease_owner text,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  delivered_at bigint,
  last_reply text,
  mx text,
  tls text,
  bounce text,
  open_count integer NOT NULL DEFAULT 0,
  open_first_at bigint,
  open_last_at bigint,
  open_scans integer NOT NULL DEFAULT 0,
  click_count integer NOT NULL DEFAULT 0,
  click_first_at bigint,
  click_last_at bigint,
  click_scans integer NOT NULL DEFAULT 0,
  parked_at bigint,
  kind text NOT NULL DEFAULT 'to'::text,
  has_deadline boolean NOT NULL DEFAULT false,
  packed bytea,
  auto_held boolean,
  CONSTRAINT deliveries_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT deliveries_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);
CREATE INDEX deliveries_domain_org_id_due_at_index ON deliveries USING btree (domain, org_id, due_at) WHERE (status = ANY (ARRAY['queued'::text, 'deferred'::text]));
CREATE INDEX deliveries_due_at_index ON deliveries USING btree (due_at) WHERE (status = ANY (ARRAY['queued'::text, 'deferred'::text]));
CREATE INDEX deliveries_email_id_position_index ON deliveries USING btree (email_id, "position");
CREATE INDEX deliveries_expires_at_index ON deliveries USING btree (expires_at) WHERE (status = ANY (ARRAY['queued'::text, 'deferred'::text]));
CREATE INDEX deliveries_held_index ON deliveries USING btree (id) WHERE (status = 'held'::text);
CREATE INDEX deliveries_lease_owner_index ON deliveries USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);
CREATE INDEX deliveries_scheduled_index ON deliveries USING btree (due_at, id) WHERE (status = 'scheduled'::text);

CREATE TABLE domains (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  name text NOT NULL,
  status text NOT NULL,
  dkim_selector text NOT NULL,
  dkim_public_key text NOT NULL,
  dkim_private_key text NOT NULL,
  open_tracking boolean NOT NULL DEFAULT false,
  click_tracking boolean NOT NULL DEFAULT false,
  tracking_host text,
  created_at bigint NOT NULL,
  verified_at bigint,
  checked_at bigint,
  tls text NOT NULL DEFAULT 'opportunistic'::text,
  check_at bigint,
  failures integer NOT NULL DEFAULT 0,
  failing_since bigint,
  return_path text NOT NULL DEFAULT 'none'::text,
  receives boolean NOT NULL DEFAULT false,
  mx_missing_since bigint,
  CONSTRAINT domains_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT domains_pkey PRIMARY KEY (id),
  CONSTRAINT domains_org_id_name_unique UNIQUE (org_id, name)
);
CREATE INDEX domains_check_at_id_index ON domains USING btree (check_at, id) WHERE (check_at IS NOT NULL);
CREATE INDEX domains_receiving_index ON domains USING btree (name) WHERE receives;
CREATE INDEX domains_return_path_index ON domains USING btree (name) WHERE (return_path <> 'none'::text);
CREATE UNIQUE INDEX domains_receives_unique ON domains USING btree (name) WHERE (receives AND (status = 'verified'::text));

CREATE TABLE dkim_keys (
  id uuid NOT NULL,
  domain_id uuid NOT NULL,
  algorithm text NOT NULL,
  selector text NOT NULL,
  public_key text NOT NULL,
  private_key text,
  status text NOT NULL,
  created_at bigint NOT NULL,
  checked_at bigint,
  keep_until bigint,
  CONSTRAINT dkim_keys_domain_id_foreign FOREIGN KEY (domain_id) REFERENCES domains(id) ON DELETE CASCADE,
  CONSTRAINT dkim_keys_pkey PRIMARY KEY (id),
  CONSTRAINT dkim_keys_domain_id_selector_unique UNIQUE (domain_id, selector)
);
CREATE INDEX dkim_keys_watched_index ON dkim_keys USING btree (id) WHERE (status <> 'signing'::text);
CREATE UNIQUE INDEX dkim_keys_live_unique ON dkim_keys USING btree (domain_id, algorithm, status) WHERE (status <> 'retired'::text);

CREATE TABLE idempotency (
  org_id uuid NOT NULL,
  kind text NOT NULL,
  key text NOT NULL,
  request_hash text NOT NULL,
  response text NOT NULL,
  email_id uuid NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT idempotency_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT idempotency_pkey PRIMARY KEY (org_id, kind, key)
) WITH (autovacuum_vacuum_scale_factor=0.01);
CREATE INDEX idempotency_kind_created_at_index ON idempotency USING btree (kind, created_at);

CREATE TABLE inbound_mails (
  id uuid NOT NULL,
  delivery_id uuid,
  kind text NOT NULL,
  sender text NOT NULL,
  recipient text NOT NULL,
  peer text NOT NULL,
  at bigint NOT NULL,
  reading text NOT NULL,
  size integer NOT NULL,
  raw bytea NOT NULL,
  CONSTRAINT inbound_mails_delivery_id_foreign FOREIGN KEY (delivery_id) REFERENCES deliveries(id) ON DELETE CASCADE,
  CONSTRAINT inbound_mails_pkey PRIMARY KEY (id)
);
CREATE INDEX inbound_mails_delivery_id_index ON inbound_mails USING btree (delivery_id);
CREATE INDEX inbound_mails_letters_index ON inbound_mails USING btree (id) WHERE (delivery_id IS NULL);

CREATE TABLE received_mails (
  id text NOT NULL,
  org_id text NOT NULL,
  domain text NOT NULL,
  route_id text NOT NULL,
  action text NOT NULL,
  webhook_id text,
  recipients text NOT NULL,
  sender text NOT NULL,
  peer text NOT NULL,
  helo text NOT NULL,
  message_id text,
  subject text NOT NULL,
  from_header text NOT NULL,
  in_reply_to text,
  summary text NOT NULL,
  size integer NOT NULL,
  at bigint NOT NULL,
  raw bytea NOT NULL,
  CONSTRAINT received_mails_pkey PRIMARY KEY (id)
);
CREATE INDEX received_mails_org_id_id_index ON received_mails USING btree (org_id, id);

CREATE TABLE received_stores (
  org_id text NOT NULL,
  mails bigint NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT received_stores_pkey PRIMARY KEY (org_id)
);

CREATE TABLE receiving_routes (
  id text NOT NULL,
  org_id text NOT NULL,
  domain text NOT NULL,
  priority integer NOT NULL,
  pattern text NOT NULL,
  action text NOT NULL,
  webhook_id text,
  reply text,
  dmarc text NOT NULL,
  largest integer,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT receiving_routes_pkey PRIMARY KEY (id)
);
CREATE INDEX receiving_routes_org_id_domain_index ON receiving_routes USING btree (org_id, domain);

CREATE TABLE resubscriptions (
  org_id text NOT NULL,
  stream text NOT NULL,
  address_key text NOT NULL,
  at bigint NOT NULL,
  CONSTRAINT resubscriptions_pkey PRIMARY KEY (org_id, stream, address_key)
);

CREATE TABLE routes (
  domain text NOT NULL,
  destination text NOT NULL,
  CONSTRAINT routes_pkey PRIMARY KEY (domain)
);

CREATE TABLE soft_bounces (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  address_key text NOT NULL,
  email_id uuid NOT NULL,
  created_at bigint NOT NULL,
  bounced_at bigint,
  CONSTRAINT soft_bounces_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT soft_bounces_pkey PRIMARY KEY (id)
);
CREATE INDEX soft_bounces_org_id_address_key_index ON soft_bounces USING btree (org_id, address_key);

CREATE TABLE source_pools (
  node text NOT NULL,
  pool text NOT NULL,
  at bigint NOT NULL,
  CONSTRAINT source_pools_pkey PRIMARY KEY (node, pool)
);

CREATE TABLE statistics (
  org_id uuid NOT NULL,
  hour bigint NOT NULL,
  sent integer NOT NULL,
  delivered integer NOT NULL,
  deferred integer NOT NULL,
  bounced integer NOT NULL,
  expired integer NOT NULL,
  complained integer NOT NULL,
  opened integer NOT NULL,
  clicked integer NOT NULL,
  took_0 integer NOT NULL,
  took_1 integer NOT NULL,
  took_2 integer NOT NULL,
  took_3 integer NOT NULL,
  took_4 integer NOT NULL,
  took_5 integer NOT NULL,
  took_6 integer NOT NULL,
  took_7 integer NOT NULL,
  took_8 integer NOT NULL,
  took_9 integer NOT NULL,
  took_10 integer NOT NULL,
  took_11 integer NOT NULL,
  took_12 integer NOT NULL,
  took_13 integer NOT NULL,
  CONSTRAINT statistics_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT statistics_pkey PRIMARY KEY (org_id, hour)
);
CREATE INDEX statistics_hour_index ON statistics USING btree (hour);

CREATE TABLE streams (
  org_id text NOT NULL,
  name text NOT NULL,
  title text NOT NULL,
  kind text NOT NULL,
  pool text,
  open_tracking boolean,
  click_tracking boolean,
  emails_per_day integer,
  used_day text,
  used integer NOT NULL DEFAULT 0,
  color text,
  created_at bigint NOT NULL,
  CONSTRAINT streams_pkey PRIMARY KEY (org_id, name)
);
CREATE INDEX streams_pool_index ON streams USING btree (pool) WHERE (pool IS NOT NULL);

CREATE TABLE suppressions (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  address text NOT NULL,
  address_key text NOT NULL,
  reason text NOT NULL,
  created_at bigint NOT NULL,
  reply text,
  stream text NOT NULL DEFAULT ''::text,
  CONSTRAINT suppressions_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT suppressions_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX suppressions_org_id_stream_address_key_unique ON suppressions USING btree (org_id, stream, address_key);

CREATE TABLE suspensions (
  destination text NOT NULL,
  reason text NOT NULL,
  created_at bigint NOT NULL,
  until bigint NOT NULL,
  CONSTRAINT suspensions_pkey PRIMARY KEY (destination)
);

CREATE TABLE tls_results (
  day integer NOT NULL,
  domain text NOT NULL,
  policy text NOT NULL,
  host text NOT NULL,
  failure text NOT NULL,
  sessions bigint NOT NULL,
  policy_text text NOT NULL,
  address text,
  source text,
  reason text,
  due_at bigint NOT NULL,
  CONSTRAINT tls_results_pkey PRIMARY KEY (day, domain, policy, host, failure)
);
CREATE INDEX tls_results_due_at_index ON tls_results USING btree (due_at);

CREATE TABLE users (
  id uuid NOT NULL,
  email text NOT NULL,
  email_key text NOT NULL,
  name text NOT NULL,
  password text,
  totp_secret text,
  totp_step bigint,
  operator boolean NOT NULL DEFAULT false,
  created_at bigint NOT NULL,
  signed_in_at bigint,
  disabled_at bigint,
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT users_email_key_unique UNIQUE (email_key)
);

CREATE TABLE memberships (
  user_id uuid NOT NULL,
  org_id uuid NOT NULL,
  role text NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT memberships_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT memberships_user_id_foreign FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT memberships_pkey PRIMARY KEY (user_id, org_id)
);
CREATE INDEX memberships_org_id_index ON memberships USING btree (org_id);

CREATE TABLE one_time_tokens (
  hash text NOT NULL,
  purpose text NOT NULL,
  user_id uuid,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  CONSTRAINT one_time_tokens_user_id_foreign FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT one_time_tokens_pkey PRIMARY KEY (hash)
);
CREATE INDEX one_time_tokens_expires_at_index ON one_time_tokens USING btree (expires_at);
CREATE INDEX one_time_tokens_user_id_index ON one_time_tokens USING btree (user_id);

CREATE TABLE recovery_codes (
  user_id uuid NOT NULL,
  hash text NOT NULL,
  CONSTRAINT recovery_codes_user_id_foreign FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, hash)
);

CREATE TABLE sessions (
  id uuid NOT NULL,
  hash text NOT NULL,
  user_id uuid NOT NULL,
  address text NOT NULL,
  agent text NOT NULL,
  created_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  CONSTRAINT sessions_user_id_foreign FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT sessions_pkey PRIMARY KEY (id),
  CONSTRAINT sessions_hash_unique UNIQUE (hash)
);
CREATE INDEX sessions_expires_at_index ON sessions USING btree (expires_at);
CREATE INDEX sessions_user_id_index ON sessions USING btree (user_id);

CREATE TABLE warm_ups (
  address text NOT NULL,
  receivers text NOT NULL,
  day integer NOT NULL,
  step integer NOT NULL,
  began_at bigint NOT NULL,
  used integer NOT NULL,
  deferred integer NOT NULL,
  CONSTRAINT warm_ups_pkey PRIMARY KEY (address, receivers)
);

CREATE TABLE webhooks (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  url text NOT NULL,
  types text NOT NULL,
  status text NOT NULL,
  reason text,
  secret text NOT NULL,
  old_secret text,
  old_secret_until bigint,
  after_position bigint NOT NULL,
  failing_since bigint,
  paused_until bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  format text NOT NULL DEFAULT 'standard'::text,
  public_key text,
  CONSTRAINT webhooks_org_id_foreign FOREIGN KEY (org_id) REFERENCES organizations(id) ON DELETE CASCADE,
  CONSTRAINT webhooks_pkey PRIMARY KEY (id)
);
CREATE INDEX webhooks_active_index ON webhooks USING btree (id) WHERE (status = 'active'::text);
CREATE INDEX webhooks_org_id_index ON webhooks USING btree (org_id);

CREATE TABLE webhook_messages (
  id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  event_id uuid NOT NULL,
  type text NOT NULL,
  position bigint NOT NULL,
  lane uuid,
  status text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  due_at bigint,
  lease_owner text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT webhook_messages_webhook_id_foreign FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE,
  CONSTRAINT webhook_messages_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_messages_webhook_id_event_id_unique UNIQUE (webhook_id, event_id)
);
CREATE INDEX webhook_messages_created_at_index ON webhook_messages USING btree (created_at);
CREATE INDEX webhook_messages_failed_index ON webhook_messages USING btree (webhook_id, event_id) WHERE (status = 'failed'::text);
CREATE INDEX webhook_messages_lease_owner_index ON webhook_messages USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);
CREATE INDEX webhook_messages_webhook_id_due_at_position_index ON webhook_messages USING btree (webhook_id, due_at, "position") WHERE (due_at IS NOT NULL);
CREATE INDEX webhook_messages_webhook_id_lane_position_index ON webhook_messages USING btree (webhook_id, lane, "position") WHERE (lane IS NOT NULL);

CREATE TABLE webhook_attempts (
  id uuid NOT NULL,
  message_id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  number integer NOT NULL,
  started_at bigint NOT NULL,
  duration integer NOT NULL,
  url text NOT NULL,
  status integer,
  answer text,
  error text,
  CONSTRAINT webhook_attempts_message_id_foreign FOREIGN KEY (message_id) REFERENCES webhook_messages(id) ON DELETE CASCADE,
  CONSTRAINT webhook_attempts_webhook_id_foreign FOREIGN KEY (webhook_id) REFERENCES webhooks(id) ON DELETE CASCADE,
  CONSTRAINT webhook_attempts_pkey PRIMARY KEY (id)
);
CREATE INDEX webhook_attempts_message_id_index ON webhook_attempts USING btree (message_id);
CREATE INDEX webhook_attempts_webhook_id_id_index ON webhook_attempts USING btree (webhook_id, id);

ALTER SEQUENCE events_position_seq OWNED BY events.position;
