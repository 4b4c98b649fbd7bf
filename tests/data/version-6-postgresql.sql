SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.contact_count_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO contact_count (campaign_id, state, number) SELECT rows.campaign_id, rows.state, count(*) FROM rows GROUP BY 1, 2; RETURN NULL; END $$;
CREATE FUNCTION public.contact_count_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO contact_count (campaign_id, state, number) VALUES (old.campaign_id, old.state, -1), (new.campaign_id, new.state, 1); RETURN NULL; END $$;
CREATE FUNCTION public.contact_count_emptied() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN DELETE FROM contact_count; RETURN NULL; END $$;
CREATE FUNCTION public.contact_count_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO contact_count (campaign_id, state, number) SELECT rows.campaign_id, rows.state, -count(*) FROM rows GROUP BY 1, 2; RETURN NULL; END $$;
CREATE FUNCTION public.delivery_count_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO delivery_count (organization_id, state, number) SELECT rows.organization_id, rows.state, count(*) FROM rows GROUP BY 1, 2; RETURN NULL; END $$;
CREATE FUNCTION public.delivery_count_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO delivery_count (organization_id, state, number) VALUES (old.organization_id, old.state, -1), (new.organization_id, new.state, 1); RETURN NULL; END $$;
CREATE FUNCTION public.delivery_count_emptied() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN DELETE FROM delivery_count; RETURN NULL; END $$;
CREATE FUNCTION public.delivery_count_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO delivery_count (organization_id, state, number) SELECT rows.organization_id, rows.state, -count(*) FROM rows GROUP BY 1, 2; RETURN NULL; END $$;
CREATE FUNCTION public.run_count_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO run_count (workflow_id, span, campaign_id, state, disposition, call_type, mode, number) SELECT rows.workflow_id, rows.created_at >> 32, rows.campaign_id, CASE rows.state WHEN 'completed' THEN 'completed' ELSE 'open' END, left(rows.disposition, 255), rows.call_type, rows.mode, count(*) FROM rows GROUP BY 1, 2, 3, 4, 5, 6, 7; RETURN NULL; END $$;
CREATE FUNCTION public.run_count_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO run_count (workflow_id, span, campaign_id, state, disposition, call_type, mode, number) VALUES (old.workflow_id, old.created_at >> 32, old.campaign_id, CASE old.state WHEN 'completed' THEN 'completed' ELSE 'open' END, left(old.disposition, 255), old.call_type, old.mode, -1), (new.workflow_id, new.created_at >> 32, new.campaign_id, CASE new.state WHEN 'completed' THEN 'completed' ELSE 'open' END, left(new.disposition, 255), new.call_type, new.mode, 1); RETURN NULL; END $$;
CREATE FUNCTION public.run_count_emptied() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN DELETE FROM run_count; RETURN NULL; END $$;
CREATE FUNCTION public.run_count_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO run_count (workflow_id, span, campaign_id, state, disposition, call_type, mode, number) SELECT rows.workflow_id, rows.created_at >> 32, rows.campaign_id, CASE rows.state WHEN 'completed' THEN 'completed' ELSE 'open' END, left(rows.disposition, 255), rows.call_type, rows.mode, -count(*) FROM rows GROUP BY 1, 2, 3, 4, 5, 6, 7; RETURN NULL; END $$;
CREATE FUNCTION public.run_tags(context text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE STRICT
    AS $_$
BEGIN
    BEGIN
        RETURN ARRAY(SELECT left(tag #>> '{}', 255) FROM jsonb_path_query((context)::jsonb, 'lax $.call_tags[*] ? (@.type() == "string")') AS tag);
    EXCEPTION WHEN data_exception THEN
        RETURN ARRAY(SELECT left(tag #>> '{}', 255) FROM jsonb_path_query((regexp_replace(context, '(?<!\\)((?:\\\\)*)\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\1\\ufffd', 'g'))::jsonb, 'lax $.call_tags[*] ? (@.type() == "string")') AS tag);
    END;
EXCEPTION WHEN OTHERS THEN
    RETURN '{}';
END $_$;
CREATE FUNCTION public.workflow_count_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO workflow_count (workflow_id, number) SELECT rows.workflow_id, count(*) FROM rows GROUP BY 1; RETURN NULL; END $$;
CREATE FUNCTION public.workflow_count_emptied() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN DELETE FROM workflow_count; RETURN NULL; END $$;
CREATE FUNCTION public.workflow_count_removed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO workflow_count (workflow_id, number) SELECT rows.workflow_id, -count(*) FROM rows GROUP BY 1; RETURN NULL; END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.api_key (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    key_prefix text NOT NULL COLLATE pg_catalog."C",
    key_hash text NOT NULL COLLATE pg_catalog."C",
    is_active boolean NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint,
    archived_at bigint
);
CREATE SEQUENCE public.api_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.api_key_id_seq OWNED BY public.api_key.id;
CREATE TABLE public.campaign (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    workflow_id bigint NOT NULL,
    telephony_configuration_id bigint,
    parent_campaign_id bigint,
    redialed_campaign_id bigint,
    name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    source_type text NOT NULL COLLATE pg_catalog."C",
    source_id text NOT NULL COLLATE pg_catalog."C",
    retry_config text NOT NULL COLLATE pg_catalog."C",
    schedule_config text COLLATE pg_catalog."C",
    circuit_breaker text NOT NULL COLLATE pg_catalog."C",
    max_concurrency bigint,
    total_rows bigint,
    processed_rows bigint NOT NULL,
    failed_rows bigint NOT NULL,
    executed_count bigint NOT NULL,
    total_queued_count bigint NOT NULL,
    logs text NOT NULL COLLATE pg_catalog."C",
    calling_hours text COLLATE pg_catalog."C",
    max_attempts_per_day bigint,
    source_status text NOT NULL COLLATE pg_catalog."C",
    source_error text COLLATE pg_catalog."C",
    synced_at bigint,
    source_lease_until bigint,
    breaker_reset_at bigint NOT NULL,
    dialed_at bigint,
    created_at bigint NOT NULL,
    started_at bigint,
    completed_at bigint
);
CREATE SEQUENCE public.campaign_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.campaign_id_seq OWNED BY public.campaign.id;
CREATE TABLE public.chat_session (
    run_id bigint NOT NULL,
    revision bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    cursor_turn_id text COLLATE pg_catalog."C",
    checkpoint text NOT NULL COLLATE pg_catalog."C",
    functions text COLLATE pg_catalog."C",
    updated_at bigint
);
CREATE TABLE public.chat_turn (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    turn_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    user_text text COLLATE pg_catalog."C",
    assistant_text text COLLATE pg_catalog."C",
    events text NOT NULL COLLATE pg_catalog."C",
    usage text NOT NULL COLLATE pg_catalog."C",
    checkpoint text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    answered_at bigint,
    discarded_at bigint,
    rewound_from text COLLATE pg_catalog."C"
);
CREATE SEQUENCE public.chat_turn_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.chat_turn_id_seq OWNED BY public.chat_turn.id;
CREATE TABLE public.contact (
    id bigint NOT NULL,
    campaign_id bigint NOT NULL,
    "row" bigint NOT NULL,
    phone_number text NOT NULL COLLATE pg_catalog."C",
    variables text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    attempts bigint NOT NULL,
    next_attempt_at bigint,
    retry_reason text COLLATE pg_catalog."C",
    run_id bigint,
    lease_until bigint
);
CREATE TABLE public.contact_count (
    campaign_id bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    is_new boolean DEFAULT true NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');
CREATE SEQUENCE public.contact_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.contact_id_seq OWNED BY public.contact.id;
CREATE TABLE public.credential (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    uuid text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    description text COLLATE pg_catalog."C",
    credential_type text NOT NULL COLLATE pg_catalog."C",
    data text COLLATE pg_catalog."C",
    is_active boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint
);
CREATE SEQUENCE public.credential_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.credential_id_seq OWNED BY public.credential.id;
CREATE TABLE public.decision (
    id bigint NOT NULL,
    contact_id bigint NOT NULL,
    campaign_id bigint NOT NULL,
    at bigint NOT NULL,
    code text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    run_id bigint
);
CREATE SEQUENCE public.decision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.decision_id_seq OWNED BY public.decision.id;
CREATE TABLE public.delivery (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    run_id bigint NOT NULL,
    node_id text NOT NULL COLLATE pg_catalog."C",
    node_name text NOT NULL COLLATE pg_catalog."C",
    delivery_uuid text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    method text COLLATE pg_catalog."C",
    url text COLLATE pg_catalog."C",
    headers text COLLATE pg_catalog."C",
    body bytea,
    credential_uuid text COLLATE pg_catalog."C",
    attempts bigint NOT NULL,
    most_attempts bigint NOT NULL,
    next_attempt_at bigint,
    last_status bigint,
    last_error text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    finished_at bigint
);
CREATE TABLE public.delivery_attempt (
    delivery_id bigint NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    seconds double precision,
    status bigint,
    error text COLLATE pg_catalog."C",
    note text COLLATE pg_catalog."C"
);
CREATE TABLE public.delivery_count (
    organization_id bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    is_new boolean DEFAULT true NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');
CREATE SEQUENCE public.delivery_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.delivery_id_seq OWNED BY public.delivery.id;
CREATE TABLE public.do_not_call (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    phone_number text NOT NULL COLLATE pg_catalog."C",
    reason text COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.do_not_call_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.do_not_call_id_seq OWNED BY public.do_not_call.id;
CREATE TABLE public.document (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    document_uuid text NOT NULL COLLATE pg_catalog."C",
    filename text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL COLLATE pg_catalog."C",
    file_hash text NOT NULL COLLATE pg_catalog."C",
    file_size_bytes bigint NOT NULL,
    processing_status text NOT NULL COLLATE pg_catalog."C",
    processing_error text COLLATE pg_catalog."C",
    total_chunks bigint NOT NULL,
    retrieval_mode text NOT NULL COLLATE pg_catalog."C",
    custom_metadata text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.document_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.document_id_seq OWNED BY public.document.id;
CREATE TABLE public.document_words (
    document_id bigint NOT NULL,
    length bigint NOT NULL
);
CREATE TABLE public.event (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    turn bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    payload text NOT NULL COLLATE pg_catalog."C",
    node_id text COLLATE pg_catalog."C",
    node_name text COLLATE pg_catalog."C",
    at bigint NOT NULL
);
CREATE SEQUENCE public.event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.event_id_seq OWNED BY public.event.id;
CREATE TABLE public.follow_up (
    run_id bigint NOT NULL,
    due_at bigint NOT NULL
);
CREATE TABLE public.idempotency_key (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    operation text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    run_id bigint,
    answer text COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.idempotency_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.idempotency_key_id_seq OWNED BY public.idempotency_key.id;
CREATE TABLE public.run (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    workflow_id bigint NOT NULL,
    version_id bigint,
    draft text COLLATE pg_catalog."C",
    campaign_id bigint,
    telephony_configuration_id bigint,
    name text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL COLLATE pg_catalog."C",
    call_type text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    token text NOT NULL COLLATE pg_catalog."C",
    public_access_token text COLLATE pg_catalog."C",
    carrier_call_id text COLLATE pg_catalog."C",
    caller_number text COLLATE pg_catalog."C",
    called_number text COLLATE pg_catalog."C",
    initial_context text NOT NULL COLLATE pg_catalog."C",
    gathered_context text NOT NULL COLLATE pg_catalog."C",
    annotations text NOT NULL COLLATE pg_catalog."C",
    llm_usage text NOT NULL COLLATE pg_catalog."C",
    disposition text COLLATE pg_catalog."C",
    duration double precision,
    has_transcript boolean NOT NULL,
    created_at bigint NOT NULL,
    answered_at bigint,
    ended_at bigint,
    slot_until bigint,
    check_at bigint,
    deadline_at bigint,
    call_id_confirmed boolean NOT NULL,
    hang_up_reason text COLLATE pg_catalog."C",
    hung_up_at bigint,
    phone_worker text COLLATE pg_catalog."C",
    phone_lease_until bigint,
    name_key text GENERATED ALWAYS AS ("left"(name, 255)) STORED COLLATE pg_catalog."C",
    disposition_key text GENERATED ALWAYS AS ("left"(disposition, 255)) STORED COLLATE pg_catalog."C",
    tags text[] GENERATED ALWAYS AS (public.run_tags(gathered_context)) STORED COLLATE pg_catalog."C"
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');
CREATE VIEW public.listed_run AS
 SELECT id,
    organization_id,
    workflow_id,
    campaign_id,
    created_at,
    state,
    duration,
    call_type,
    mode,
    caller_number,
    called_number,
    name_key AS name,
    disposition_key AS disposition,
    tags
   FROM public.run;
CREATE TABLE public.organization (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    preferences text NOT NULL COLLATE pg_catalog."C",
    model_configuration text COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.organization_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.organization_id_seq OWNED BY public.organization.id;
CREATE TABLE public.outbound_call (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    at bigint NOT NULL
);
CREATE SEQUENCE public.outbound_call_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.outbound_call_id_seq OWNED BY public.outbound_call.id;
CREATE TABLE public.passage (
    id bigint NOT NULL,
    document_id bigint NOT NULL,
    number bigint NOT NULL,
    text text NOT NULL COLLATE pg_catalog."C"
);
CREATE SEQUENCE public.passage_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.passage_id_seq OWNED BY public.passage.id;
CREATE TABLE public.passage_words (
    passage_id bigint NOT NULL,
    document_id bigint NOT NULL,
    length integer NOT NULL,
    words tsvector NOT NULL
);
CREATE TABLE public.phone_number (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    telephony_configuration_id bigint NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    address_normalized text NOT NULL COLLATE pg_catalog."C",
    address_type text NOT NULL COLLATE pg_catalog."C",
    country_code text COLLATE pg_catalog."C",
    label text COLLATE pg_catalog."C",
    inbound_workflow_id bigint,
    is_active boolean NOT NULL,
    is_default_caller_id boolean NOT NULL,
    extra_metadata text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.phone_number_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.phone_number_id_seq OWNED BY public.phone_number.id;
CREATE TABLE public.run_count (
    workflow_id bigint NOT NULL,
    span bigint NOT NULL,
    campaign_id bigint,
    state text NOT NULL COLLATE pg_catalog."C",
    disposition text COLLATE pg_catalog."C",
    call_type text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    is_new boolean DEFAULT true NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');
CREATE SEQUENCE public.run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.run_id_seq OWNED BY public.run.id;
CREATE TABLE public.secret_check (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE SEQUENCE public.secret_check_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.secret_check_id_seq OWNED BY public.secret_check.id;
CREATE TABLE public.snapshot (
    run_id bigint NOT NULL,
    number bigint NOT NULL,
    calling bigint,
    state text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.status_callback (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    outcome text COLLATE pg_catalog."C",
    fields text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL
);
CREATE SEQUENCE public.status_callback_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.status_callback_id_seq OWNED BY public.status_callback.id;
CREATE TABLE public.step (
    run_id bigint NOT NULL,
    number bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.telephony_configuration (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL COLLATE pg_catalog."C",
    credentials text NOT NULL COLLATE pg_catalog."C",
    account_id text COLLATE pg_catalog."C",
    calls_per_second double precision,
    paced_until bigint,
    is_default_outbound boolean NOT NULL,
    inactive boolean NOT NULL,
    inactive_since bigint,
    inactive_reason text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE SEQUENCE public.telephony_configuration_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.telephony_configuration_id_seq OWNED BY public.telephony_configuration.id;
CREATE TABLE public.tool (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    tool_uuid text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    description text COLLATE pg_catalog."C",
    category text NOT NULL COLLATE pg_catalog."C",
    icon text COLLATE pg_catalog."C",
    icon_color text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint
);
CREATE SEQUENCE public.tool_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.tool_id_seq OWNED BY public.tool.id;
CREATE TABLE public.trigger_path (
    id bigint NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    workflow_id bigint NOT NULL
);
CREATE SEQUENCE public.trigger_path_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trigger_path_id_seq OWNED BY public.trigger_path.id;
CREATE TABLE public.turn (
    run_id bigint NOT NULL,
    number bigint NOT NULL,
    caller_text text NOT NULL COLLATE pg_catalog."C",
    actions text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    answered_at bigint,
    worker text NOT NULL COLLATE pg_catalog."C",
    touched_at bigint NOT NULL
);
CREATE TABLE public.upload (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    file_key text NOT NULL COLLATE pg_catalog."C",
    content bytea NOT NULL,
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.upload_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.upload_id_seq OWNED BY public.upload.id;
CREATE TABLE public.voiceapi_schema (
    version integer NOT NULL
);
CREATE TABLE public.webhook_secret (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    secret text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
CREATE SEQUENCE public.webhook_secret_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.webhook_secret_id_seq OWNED BY public.webhook_secret.id;
CREATE TABLE public.workflow (
    id bigint NOT NULL,
    organization_id bigint NOT NULL,
    workflow_uuid text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    total_runs bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.workflow_count (
    workflow_id bigint NOT NULL,
    number integer NOT NULL,
    is_new boolean DEFAULT true NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');
CREATE SEQUENCE public.workflow_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.workflow_id_seq OWNED BY public.workflow.id;
CREATE TABLE public.workflow_version (
    id bigint NOT NULL,
    workflow_id bigint NOT NULL,
    version_number bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    configurations text NOT NULL COLLATE pg_catalog."C",
    template_context_variables text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    published_at bigint,
    CONSTRAINT workflow_version_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'published'::text, 'archived'::text])))
);
CREATE SEQUENCE public.workflow_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.workflow_version_id_seq OWNED BY public.workflow_version.id;
ALTER TABLE ONLY public.api_key ALTER COLUMN id SET DEFAULT nextval('public.api_key_id_seq'::regclass);
ALTER TABLE ONLY public.campaign ALTER COLUMN id SET DEFAULT nextval('public.campaign_id_seq'::regclass);
ALTER TABLE ONLY public.chat_turn ALTER COLUMN id SET DEFAULT nextval('public.chat_turn_id_seq'::regclass);
ALTER TABLE ONLY public.contact ALTER COLUMN id SET DEFAULT nextval('public.contact_id_seq'::regclass);
ALTER TABLE ONLY public.credential ALTER COLUMN id SET DEFAULT nextval('public.credential_id_seq'::regclass);
ALTER TABLE ONLY public.decision ALTER COLUMN id SET DEFAULT nextval('public.decision_id_seq'::regclass);
ALTER TABLE ONLY public.delivery ALTER COLUMN id SET DEFAULT nextval('public.delivery_id_seq'::regclass);
ALTER TABLE ONLY public.do_not_call ALTER COLUMN id SET DEFAULT nextval('public.do_not_call_id_seq'::regclass);
ALTER TABLE ONLY public.document ALTER COLUMN id SET DEFAULT nextval('public.document_id_seq'::regclass);
ALTER TABLE ONLY public.event ALTER COLUMN id SET DEFAULT nextval('public.event_id_seq'::regclass);
ALTER TABLE ONLY public.idempotency_key ALTER COLUMN id SET DEFAULT nextval('public.idempotency_key_id_seq'::regclass);
ALTER TABLE ONLY public.organization ALTER COLUMN id SET DEFAULT nextval('public.organization_id_seq'::regclass);
ALTER TABLE ONLY public.outbound_call ALTER COLUMN id SET DEFAULT nextval('public.outbound_call_id_seq'::regclass);
ALTER TABLE ONLY public.passage ALTER COLUMN id SET DEFAULT nextval('public.passage_id_seq'::regclass);
ALTER TABLE ONLY public.phone_number ALTER COLUMN id SET DEFAULT nextval('public.phone_number_id_seq'::regclass);
ALTER TABLE ONLY public.run ALTER COLUMN id SET DEFAULT nextval('public.run_id_seq'::regclass);
ALTER TABLE ONLY public.secret_check ALTER COLUMN id SET DEFAULT nextval('public.secret_check_id_seq'::regclass);
ALTER TABLE ONLY public.status_callback ALTER COLUMN id SET DEFAULT nextval('public.status_callback_id_seq'::regclass);
ALTER TABLE ONLY public.telephony_configuration ALTER COLUMN id SET DEFAULT nextval('public.telephony_configuration_id_seq'::regclass);
ALTER TABLE ONLY public.tool ALTER COLUMN id SET DEFAULT nextval('public.tool_id_seq'::regclass);
ALTER TABLE ONLY public.trigger_path ALTER COLUMN id SET DEFAULT nextval('public.trigger_path_id_seq'::regclass);
ALTER TABLE ONLY public.upload ALTER COLUMN id SET DEFAULT nextval('public.upload_id_seq'::regclass);
ALTER TABLE ONLY public.webhook_secret ALTER COLUMN id SET DEFAULT nextval('public.webhook_secret_id_seq'::regclass);
ALTER TABLE ONLY public.workflow ALTER COLUMN id SET DEFAULT nextval('public.workflow_id_seq'::regclass);
ALTER TABLE ONLY public.workflow_version ALTER COLUMN id SET DEFAULT nextval('public.workflow_version_id_seq'::regclass);
INSERT INTO public.api_key VALUES (1, 1, 'VOICEAPI_API_KEY', 'kkkkkkkk', 'ee6321d758cc85fac5f6ad5983bbd4ad1dd594c564fcc8e2f5896f09afc4d574', true, 1795390012803096, 1795390073222900, NULL);
INSERT INTO public.campaign VALUES (1, 1, 2, 1, NULL, NULL, 'Running', 'running', 'csv', 'campaigns/1/42642c41-952d-4b0f-a675-9612bec8d118_Running.csv', '{"enabled":true,"max_retries":1,"retry_delay_seconds":30,"retry_on_busy":true,"retry_on_no_answer":true,"retry_on_voicemail":true}', NULL, '{"enabled":false,"failure_threshold":0.5,"window_seconds":120,"min_calls_in_window":5}', 2, 5, 4, 0, 4, 6, '[]', '{"start":"00:00","end":"24:00"}', 5, 'completed', NULL, 1795390012950582, NULL, 1795390012947612, NULL, 1795390012945690, 1795390012947615, NULL);
INSERT INTO public.campaign VALUES (2, 1, 2, 1, NULL, NULL, 'Paused', 'paused', 'csv', 'campaigns/1/c3988879-fb44-4e38-add2-b3518590f311_Paused.csv', '{"enabled":true,"max_retries":1,"retry_delay_seconds":30,"retry_on_busy":true,"retry_on_no_answer":true,"retry_on_voicemail":true}', NULL, '{"enabled":false,"failure_threshold":0.5,"window_seconds":120,"min_calls_in_window":5}', NULL, 2, 0, 0, 0, 2, '[]', NULL, NULL, 'completed', NULL, 1795390012988188, NULL, 1795390012984527, NULL, 1795390012981836, 1795390012984530, NULL);
INSERT INTO public.campaign VALUES (3, 1, 2, 1, NULL, NULL, 'Syncing', 'syncing', 'csv', 'campaigns/1/d408ebff-5a8a-4533-a42d-03a07d722259_Syncing.csv', '{"enabled":true,"max_retries":1,"retry_delay_seconds":30,"retry_on_busy":true,"retry_on_no_answer":true,"retry_on_voicemail":true}', NULL, '{"enabled":false,"failure_threshold":0.5,"window_seconds":120,"min_calls_in_window":5}', NULL, 2, 0, 0, 0, 2, '[]', '{"start":"00:00","end":"24:00"}', NULL, 'in_progress', NULL, NULL, 1795390042998912, 1795390012996785, NULL, 1795390012994152, 1795390012996788, NULL);
INSERT INTO public.campaign VALUES (4, 1, 2, 1, NULL, NULL, 'Created', 'created', 'csv', 'campaigns/1/75d165e9-60a8-450a-8513-d87c395b0ca8_Created.csv', '{"enabled":true,"max_retries":1,"retry_delay_seconds":30,"retry_on_busy":true,"retry_on_no_answer":true,"retry_on_voicemail":true}', NULL, '{"enabled":false,"failure_threshold":0.5,"window_seconds":120,"min_calls_in_window":5}', NULL, NULL, 0, 0, 0, 0, '[]', NULL, 2, 'pending', NULL, NULL, NULL, 1795390013002779, NULL, 1795390013002781, NULL, NULL);
INSERT INTO public.chat_session VALUES (4, 4, 'idle', NULL, '{"version":1,"anchor_turn_id":"turn_69da1c3172b0","current_node_id":"1","messages":[{"role":"assistant","content":"Hello, is now a good time?"},{"role":"user","content":"Hm, what is it about?"},{"role":"assistant","content":"Sorry, I didn''t get that. Hello, is now a good time?"}],"gathered_context":{"nodes_visited":["Hello"]},"tool_state":{"phase":"listening","started_at":1795390012.9318361,"turn":1,"missing":[],"usage":{},"number":1,"occasion":"reply","rounds":1,"silences":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":""}}', NULL, 1795390012939581);
INSERT INTO public.chat_session VALUES (9, 4, 'completed', NULL, '{"version":1,"anchor_turn_id":"turn_7206c40bd63c","current_node_id":"2","messages":[{"role":"assistant","content":"Now?"},{"role":"user","content":"Yes."},{"role":"assistant","content":"","tool_calls":[{"id":"call_2","type":"function","function":{"name":"yes","arguments":"{}"}}]},{"role":"tool","content":"{\"status\": \"done\"}","tool_call_id":"call_2"},{"role":"assistant","content":"Fine, goodbye."}],"gathered_context":{"nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_qualified"]},"tool_state":{"phase":"ended","started_at":1795390073.238418,"turn":1,"missing":[],"usage":{},"number":3,"occasion":"opening","rounds":2,"spoken":14,"silences":0,"failures":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":"user_qualified"}}', NULL, 1795390073375257);
INSERT INTO public.chat_session VALUES (10, 4, 'completed', NULL, '{"version":1,"anchor_turn_id":"turn_04a57eeda1c6","current_node_id":"2","messages":[{"role":"assistant","content":"Now?"},{"role":"user","content":"Yes."},{"role":"assistant","content":"","tool_calls":[{"id":"call_2","type":"function","function":{"name":"yes","arguments":"{}"}}]},{"role":"tool","content":"{\"status\": \"done\"}","tool_call_id":"call_2"},{"role":"assistant","content":"Fine, goodbye."}],"gathered_context":{"nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_qualified"]},"tool_state":{"phase":"ended","started_at":1795390073.470354,"turn":1,"missing":[],"usage":{},"number":3,"occasion":"opening","rounds":2,"spoken":14,"silences":0,"failures":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":"user_qualified"}}', NULL, 1795390073507030);
INSERT INTO public.chat_turn VALUES (1, 4, 'turn_cd62df72bad9', 'completed', NULL, 'Hello, is now a good time?', '[{"type":"node_transition","created_at":"2026-11-22T06:17:58.845Z","payload":{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}}]', '{}', '{"version":1,"anchor_turn_id":"turn_cd62df72bad9","current_node_id":"1","messages":[{"role":"assistant","content":"Hello, is now a good time?"}],"gathered_context":{"nodes_visited":["Hello"]},"tool_state":{"phase":"listening","started_at":1795390012.9318361,"turn":0,"missing":[],"usage":{},"number":0,"occasion":"opening","rounds":0,"silences":0,"caller_spoke":false,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":""}}', 1795390012931658, 1795390012932022, NULL, NULL);
INSERT INTO public.chat_turn VALUES (2, 4, 'turn_69da1c3172b0', 'completed', 'Hm, what is it about?', 'Sorry, I didn''t get that. Hello, is now a good time?', '[]', '{}', '{"version":1,"anchor_turn_id":"turn_69da1c3172b0","current_node_id":"1","messages":[{"role":"assistant","content":"Hello, is now a good time?"},{"role":"user","content":"Hm, what is it about?"},{"role":"assistant","content":"Sorry, I didn''t get that. Hello, is now a good time?"}],"gathered_context":{"nodes_visited":["Hello"]},"tool_state":{"phase":"listening","started_at":1795390012.9318361,"turn":1,"missing":[],"usage":{},"number":1,"occasion":"reply","rounds":1,"silences":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":""}}', 1795390012938936, 1795390012939479, NULL, NULL);
INSERT INTO public.chat_turn VALUES (3, 9, 'turn_8b33983765c0', 'completed', NULL, 'Now?', '[{"type":"node_transition","created_at":"2026-11-22T09:25:31.578Z","payload":{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}},{"type":"execution_error","created_at":"2026-11-22T09:25:31.677Z","payload":{"message":"The fetch before the call failed: http://127.0.0.1:9 is an address in a private network, which this service may not ask."}}]', '{}', '{"version":1,"anchor_turn_id":"turn_8b33983765c0","current_node_id":"1","messages":[{"role":"assistant","content":"Now?"}],"gathered_context":{"nodes_visited":["Hello"]},"tool_state":{"phase":"listening","started_at":1795390073.238418,"turn":0,"missing":[],"usage":{},"number":1,"occasion":"opening","rounds":0,"spoken":4,"silences":0,"failures":0,"caller_spoke":false,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":""}}', 1795390073234591, 1795390073337656, NULL, NULL);
INSERT INTO public.chat_turn VALUES (4, 9, 'turn_7206c40bd63c', 'completed', 'Yes.', 'Fine, goodbye.', '[{"type":"tool_call_started","created_at":"2026-11-22T09:25:31.714Z","payload":{"function_name":"yes","tool_call_id":"call_2","arguments":{}}},{"type":"node_transition","created_at":"2026-11-22T09:25:31.714Z","payload":{"node_id":"2","node_name":"Fine","previous_node_id":"1","previous_node_name":"Hello","allow_interrupt":false}},{"type":"tool_call_result","created_at":"2026-11-22T09:25:31.714Z","payload":{"function_name":"yes","tool_call_id":"call_2","result":"{\"status\": \"done\"}"}},{"type":"session_end","created_at":"2026-11-22T09:25:31.715Z","payload":{"reason":"user_qualified"}}]', '{}', '{"version":1,"anchor_turn_id":"turn_7206c40bd63c","current_node_id":"2","messages":[{"role":"assistant","content":"Now?"},{"role":"user","content":"Yes."},{"role":"assistant","content":"","tool_calls":[{"id":"call_2","type":"function","function":{"name":"yes","arguments":"{}"}}]},{"role":"tool","content":"{\"status\": \"done\"}","tool_call_id":"call_2"},{"role":"assistant","content":"Fine, goodbye."}],"gathered_context":{"nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_qualified"]},"tool_state":{"phase":"ended","started_at":1795390073.238418,"turn":1,"missing":[],"usage":{},"number":3,"occasion":"opening","rounds":2,"spoken":14,"silences":0,"failures":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":"user_qualified"}}', 1795390073373907, 1795390073375110, NULL, NULL);
INSERT INTO public.chat_turn VALUES (5, 10, 'turn_ea770133b7a2', 'completed', NULL, 'Now?', '[{"type":"node_transition","created_at":"2026-11-22T09:25:31.810Z","payload":{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}},{"type":"execution_error","created_at":"2026-11-22T09:25:31.817Z","payload":{"message":"The fetch before the call failed: http://127.0.0.1:9 is an address in a private network, which this service may not ask."}}]', '{}', '{"version":1,"anchor_turn_id":"turn_ea770133b7a2","current_node_id":"1","messages":[{"role":"assistant","content":"Now?"}],"gathered_context":{"nodes_visited":["Hello"]},"tool_state":{"phase":"listening","started_at":1795390073.470354,"turn":0,"missing":[],"usage":{},"number":1,"occasion":"opening","rounds":0,"spoken":4,"silences":0,"failures":0,"caller_spoke":false,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":""}}', 1795390073470139, 1795390073477558, NULL, NULL);
INSERT INTO public.chat_turn VALUES (6, 10, 'turn_04a57eeda1c6', 'completed', 'Yes.', 'Fine, goodbye.', '[{"type":"tool_call_started","created_at":"2026-11-22T09:25:31.846Z","payload":{"function_name":"yes","tool_call_id":"call_2","arguments":{}}},{"type":"node_transition","created_at":"2026-11-22T09:25:31.846Z","payload":{"node_id":"2","node_name":"Fine","previous_node_id":"1","previous_node_name":"Hello","allow_interrupt":false}},{"type":"tool_call_result","created_at":"2026-11-22T09:25:31.846Z","payload":{"function_name":"yes","tool_call_id":"call_2","result":"{\"status\": \"done\"}"}},{"type":"session_end","created_at":"2026-11-22T09:25:31.846Z","payload":{"reason":"user_qualified"}}]', '{}', '{"version":1,"anchor_turn_id":"turn_04a57eeda1c6","current_node_id":"2","messages":[{"role":"assistant","content":"Now?"},{"role":"user","content":"Yes."},{"role":"assistant","content":"","tool_calls":[{"id":"call_2","type":"function","function":{"name":"yes","arguments":"{}"}}]},{"role":"tool","content":"{\"status\": \"done\"}","tool_call_id":"call_2"},{"role":"assistant","content":"Fine, goodbye."}],"gathered_context":{"nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_qualified"]},"tool_state":{"phase":"ended","started_at":1795390073.470354,"turn":1,"missing":[],"usage":{},"number":3,"occasion":"opening","rounds":2,"spoken":14,"silences":0,"failures":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":"user_qualified"}}', 1795390073505549, 1795390073506833, NULL, NULL);
INSERT INTO public.contact VALUES (1, 1, 1, '+12025552001', '{"phone_number":"+12025552001","first_name":"Caller 1"}', 'completed', 1, NULL, NULL, 5, NULL);
INSERT INTO public.contact VALUES (2, 1, 2, '+12025550101', '{"phone_number":"+12025550101","first_name":"Caller 2"}', 'retry', 1, 1795390042972812, 'busy', 6, NULL);
INSERT INTO public.contact VALUES (3, 1, 3, '+12025552003', '{"phone_number":"+12025552003","first_name":"Caller 3"}', 'dialing', 1, NULL, NULL, 7, 1795390042973786);
INSERT INTO public.contact VALUES (4, 1, 4, '+12025552004', '{"phone_number":"+12025552004","first_name":"Caller 4"}', 'dialing', 1, NULL, NULL, 8, 1795390042973786);
INSERT INTO public.contact VALUES (5, 1, 5, '+12025552005', '{"phone_number":"+12025552005","first_name":"Caller 5"}', 'queued', 0, 1795390012949598, NULL, NULL, NULL);
INSERT INTO public.contact VALUES (6, 1, 6, '12', '{"phone_number":"12","first_name":"Caller 6"}', 'skipped', 0, NULL, NULL, NULL, NULL);
INSERT INTO public.contact VALUES (7, 2, 1, '+12025552011', '{"phone_number":"+12025552011","first_name":"Caller 1"}', 'queued', 0, 1795390012987030, NULL, NULL, NULL);
INSERT INTO public.contact VALUES (8, 2, 2, '+12025552012', '{"phone_number":"+12025552012","first_name":"Caller 2"}', 'queued', 0, 1795390012987030, NULL, NULL, NULL);
INSERT INTO public.contact VALUES (9, 3, 1, '+12025552021', '{"phone_number":"+12025552021","first_name":"Caller 1"}', 'queued', 0, 1795390012998912, NULL, NULL, NULL);
INSERT INTO public.contact VALUES (10, 3, 2, '+12025552022', '{"phone_number":"+12025552022","first_name":"Caller 2"}', 'queued', 0, 1795390012998912, NULL, NULL, NULL);
INSERT INTO public.contact_count VALUES (1, 'queued', 1, true);
INSERT INTO public.contact_count VALUES (1, 'dialing', 2, true);
INSERT INTO public.contact_count VALUES (1, 'completed', 1, true);
INSERT INTO public.contact_count VALUES (1, 'skipped', 1, true);
INSERT INTO public.contact_count VALUES (2, 'queued', 2, true);
INSERT INTO public.contact_count VALUES (1, 'retry', 1, true);
INSERT INTO public.contact_count VALUES (3, 'queued', 2, true);
INSERT INTO public.credential VALUES (1, 1, '182a16bf-1e90-4376-a702-49d3e6edb5cb', 'CRM', NULL, 'bearer_token', 'gAAAAABrArUL5p2GJKgxsdEtS1mt2iLHUQTgr2iOznSwdwKSekoyE1UwMX6C8-0NyeE2-_GL0drwPKRZQuqS9kaZPDS5urRJywnBWlmX-xV9YjZ8400F0tc=', true, 1795390073537080, NULL);
INSERT INTO public.decision VALUES (1, 6, 1, 1795390012949598, 'row_skipped', 'A number to call is written with its country code, such as +12025550123.', NULL);
INSERT INTO public.decision VALUES (2, 1, 1, 1795390012950943, 'dialed', 'It is called for the first time.', 5);
INSERT INTO public.decision VALUES (3, 2, 1, 1795390012950943, 'dialed', 'It is called for the first time.', 6);
INSERT INTO public.decision VALUES (4, 1, 1, 1795390012969836, 'answered', 'The call was answered.', 5);
INSERT INTO public.decision VALUES (5, 2, 1, 1795390012972812, 'busy', 'The line was busy; the next attempt is due at 2026-11-22T06:18:28Z.', 6);
INSERT INTO public.decision VALUES (6, 3, 1, 1795390012973786, 'dialed', 'It is called for the first time.', 7);
INSERT INTO public.decision VALUES (7, 4, 1, 1795390012973786, 'dialed', 'It is called for the first time.', 8);
INSERT INTO public.delivery VALUES (1, 1, 1, 'w', 'Hook', 'a2249432-55bb-4631-a821-c013033a8129', 'pending', NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795390012915684, NULL);
INSERT INTO public.delivery VALUES (2, 1, 9, 'w', 'CRM', '070aafda-20ab-4644-a7f5-56c76665f0c8', 'pending', 'POST', 'http://voice:gAAAAABrAuStnYst5KM0BgOpQhaXDuCYQVzrEDewG9zpPgmVlE28Va9e1UYNozcoIABE0Axo3aJ4bSeH9L0JSTZXunXJRYtKDw==@127.0.0.1:9/secret', 'gAAAAABrArUL7lLRPQ-IuhKZ2CYRScrFp28ih0vUpVCnkQkW_63WJ8XaeOJkfgePoKCG29yt9ywXut6iszN-l7_lP1ohtwlkqWJASuq8keVyPCLooAyRMYf492KDZ3crfxK6lf6C7srPDv1YfotXGek5jZUhd5YbYy6FWHs7simSf7EbuljOyIzng1lsa3MrQByQOvYjvrOV', '\x7b2272756e223a2239222c2263616c6c5f646973706f736974696f6e223a22757365725f7175616c6966696564227d', NULL, 0, 5, 1795390073388077, NULL, NULL, 1795390073385105, NULL);
INSERT INTO public.delivery VALUES (3, 1, 10, 'w', 'CRM', '29fb9e67-be6a-4530-92a8-3b66be934041', 'pending', NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 1795390073516859, NULL);
INSERT INTO public.delivery_count VALUES (1, 'pending', 3, true);
INSERT INTO public.event VALUES (1, 1, 0, 'rtf-node-transition', '{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}', '1', 'Hello', 1795390012905543);
INSERT INTO public.event VALUES (2, 1, 0, 'rtf-bot-text', '{"text":"Hello, is now a good time?","timestamp":"2026-11-22T06:17:58.819Z"}', '1', 'Hello', 1795390012905543);
INSERT INTO public.event VALUES (3, 1, 1, 'rtf-user-transcription', '{"text":"Yes, this is a good time.","final":true,"timestamp":"2026-11-22T06:17:58.822Z"}', '1', 'Hello', 1795390012908468);
INSERT INTO public.event VALUES (4, 1, 1, 'rtf-function-call-start', '{"function_name":"yes","tool_call_id":"call_1","arguments":{}}', '1', 'Hello', 1795390012909769);
INSERT INTO public.event VALUES (5, 1, 1, 'rtf-node-transition', '{"node_id":"2","node_name":"Fine","previous_node_id":"1","previous_node_name":"Hello","allow_interrupt":false}', '2', 'Fine', 1795390012909769);
INSERT INTO public.event VALUES (6, 1, 1, 'rtf-function-call-end', '{"function_name":"yes","tool_call_id":"call_1","result":"{\"status\": \"done\"}"}', '1', 'Hello', 1795390012909769);
INSERT INTO public.event VALUES (7, 1, 1, 'rtf-bot-text', '{"text":"Great, goodbye.","timestamp":"2026-11-22T06:17:58.824Z"}', '2', 'Fine', 1795390012910052);
INSERT INTO public.event VALUES (8, 1, 1, 'rtf-latency-measured', '{"latency_seconds":0.002}', '2', 'Fine', 1795390012910244);
INSERT INTO public.event VALUES (9, 2, 0, 'rtf-node-transition', '{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}', '1', 'Hello', 1795390012922363);
INSERT INTO public.event VALUES (10, 2, 0, 'rtf-bot-text', '{"text":"Hello, is now a good time?","timestamp":"2026-11-22T06:17:58.836Z"}', '1', 'Hello', 1795390012922363);
INSERT INTO public.event VALUES (11, 2, 1, 'rtf-bot-text', '{"text":"Are you still there? Hello, is now a good time?","timestamp":"2026-11-22T06:17:58.838Z"}', '1', 'Hello', 1795390012924126);
INSERT INTO public.event VALUES (12, 4, 0, 'rtf-node-transition', '{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}', '1', 'Hello', 1795390012931836);
INSERT INTO public.event VALUES (13, 4, 0, 'rtf-bot-text', '{"text":"Hello, is now a good time?","timestamp":"2026-11-22T06:17:58.845Z"}', '1', 'Hello', 1795390012931836);
INSERT INTO public.event VALUES (14, 4, 1, 'rtf-user-transcription', '{"text":"Hm, what is it about?","final":true,"timestamp":"2026-11-22T06:17:58.853Z"}', '1', 'Hello', 1795390012939061);
INSERT INTO public.event VALUES (15, 4, 1, 'rtf-bot-text', '{"text":"Sorry, I didn''t get that. Hello, is now a good time?","timestamp":"2026-11-22T06:17:58.853Z"}', '1', 'Hello', 1795390012939374);
INSERT INTO public.event VALUES (16, 5, 0, 'rtf-node-transition', '{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}', '1', 'Hello', 1795390012964350);
INSERT INTO public.event VALUES (17, 5, 0, 'rtf-bot-text', '{"text":"Hello, is now a good time?","timestamp":"2026-11-22T06:17:58.878Z"}', '1', 'Hello', 1795390012964350);
INSERT INTO public.event VALUES (18, 5, 1, 'rtf-user-transcription', '{"text":"Yes, this is a good time.","final":true,"timestamp":"2026-11-22T06:17:58.879Z"}', '1', 'Hello', 1795390012965897);
INSERT INTO public.event VALUES (19, 5, 1, 'rtf-function-call-start', '{"function_name":"yes","tool_call_id":"call_1","arguments":{}}', '1', 'Hello', 1795390012966507);
INSERT INTO public.event VALUES (20, 5, 1, 'rtf-node-transition', '{"node_id":"2","node_name":"Fine","previous_node_id":"1","previous_node_name":"Hello","allow_interrupt":false}', '2', 'Fine', 1795390012966507);
INSERT INTO public.event VALUES (21, 5, 1, 'rtf-function-call-end', '{"function_name":"yes","tool_call_id":"call_1","result":"{\"status\": \"done\"}"}', '1', 'Hello', 1795390012966507);
INSERT INTO public.event VALUES (22, 5, 1, 'rtf-bot-text', '{"text":"Great, goodbye.","timestamp":"2026-11-22T06:17:58.880Z"}', '2', 'Fine', 1795390012966733);
INSERT INTO public.event VALUES (23, 5, 1, 'rtf-latency-measured', '{"latency_seconds":0.001}', '2', 'Fine', 1795390012966901);
INSERT INTO public.event VALUES (24, 9, 0, 'rtf-node-transition', '{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}', '1', 'Hello', 1795390073238418);
INSERT INTO public.event VALUES (25, 9, 0, 'rtf-pipeline-error', '{"error":"The fetch before the call failed: http://127.0.0.1:9 is an address in a private network, which this service may not ask.","fatal":false,"processor":"pre_call_fetch"}', '1', 'Hello', 1795390073337262);
INSERT INTO public.event VALUES (26, 9, 0, 'rtf-bot-text', '{"text":"Now?","timestamp":"2026-11-22T09:25:31.677Z"}', '1', 'Hello', 1795390073337262);
INSERT INTO public.event VALUES (27, 9, 1, 'rtf-user-transcription', '{"text":"Yes.","final":true,"timestamp":"2026-11-22T09:25:31.714Z"}', '1', 'Hello', 1795390073374076);
INSERT INTO public.event VALUES (28, 9, 1, 'rtf-function-call-start', '{"function_name":"yes","tool_call_id":"call_2","arguments":{}}', '1', 'Hello', 1795390073374758);
INSERT INTO public.event VALUES (29, 9, 1, 'rtf-node-transition', '{"node_id":"2","node_name":"Fine","previous_node_id":"1","previous_node_name":"Hello","allow_interrupt":false}', '2', 'Fine', 1795390073374758);
INSERT INTO public.event VALUES (30, 9, 1, 'rtf-function-call-end', '{"function_name":"yes","tool_call_id":"call_2","result":"{\"status\": \"done\"}"}', '1', 'Hello', 1795390073374758);
INSERT INTO public.event VALUES (31, 9, 1, 'rtf-bot-text', '{"text":"Fine, goodbye.","timestamp":"2026-11-22T09:25:31.715Z"}', '2', 'Fine', 1795390073374967);
INSERT INTO public.event VALUES (32, 10, 0, 'rtf-node-transition', '{"node_id":"1","node_name":"Hello","previous_node_id":null,"previous_node_name":null,"allow_interrupt":false}', '1', 'Hello', 1795390073470354);
INSERT INTO public.event VALUES (33, 10, 0, 'rtf-pipeline-error', '{"error":"The fetch before the call failed: http://127.0.0.1:9 is an address in a private network, which this service may not ask.","fatal":false,"processor":"pre_call_fetch"}', '1', 'Hello', 1795390073477174);
INSERT INTO public.event VALUES (34, 10, 0, 'rtf-bot-text', '{"text":"Now?","timestamp":"2026-11-22T09:25:31.817Z"}', '1', 'Hello', 1795390073477174);
INSERT INTO public.event VALUES (35, 10, 1, 'rtf-user-transcription', '{"text":"Yes.","final":true,"timestamp":"2026-11-22T09:25:31.845Z"}', '1', 'Hello', 1795390073505717);
INSERT INTO public.event VALUES (36, 10, 1, 'rtf-function-call-start', '{"function_name":"yes","tool_call_id":"call_2","arguments":{}}', '1', 'Hello', 1795390073506336);
INSERT INTO public.event VALUES (37, 10, 1, 'rtf-node-transition', '{"node_id":"2","node_name":"Fine","previous_node_id":"1","previous_node_name":"Hello","allow_interrupt":false}', '2', 'Fine', 1795390073506336);
INSERT INTO public.event VALUES (38, 10, 1, 'rtf-function-call-end', '{"function_name":"yes","tool_call_id":"call_2","result":"{\"status\": \"done\"}"}', '1', 'Hello', 1795390073506336);
INSERT INTO public.event VALUES (39, 10, 1, 'rtf-bot-text', '{"text":"Fine, goodbye.","timestamp":"2026-11-22T09:25:31.846Z"}', '2', 'Fine', 1795390073506629);
INSERT INTO public.follow_up VALUES (1, 1795390073435243);
INSERT INTO public.follow_up VALUES (10, 1795390073516809);
INSERT INTO public.organization VALUES (1, 'default', '{}', NULL, 1795390012767324);
INSERT INTO public.phone_number VALUES (1, 1, 1, '+12025550199', '+12025550199', 'pstn', NULL, 'Simulated caller', NULL, true, true, '{}', 1795390012802604, 1795390012802607);
INSERT INTO public.run VALUES (1, 1, 1, 1, NULL, NULL, 1, 'WR-API-9856', 'simulator', 'outbound', 'completed', 'sJbEHQjxgeSbPgZwMswPf-IHHuB934rQ3waVAQD41DU', '326a1e6f-922d-47c9-923e-c160fe3d4fee', 'SIM-sJbEHQjxgeSbPgZw', '+12025550199', '+12025550123', '{"provider":"simulator","direction":"outbound","phone_number":"+12025550123","trigger_mode":"production","telephony_configuration_id":1,"agent_identifier":"hooked","agent_identifier_type":"trigger_path","workflow_uuid":"6fd8cd45-aebe-450a-a2ed-b963eabf4668","agent_uuid":"hooked","api_key_id":1,"api_key_created_by":null,"called_number":"+12025550123","caller_number":"+12025550199"}', '{"provider":"simulator","triggered_by":"api","trigger_uuid":"hooked","call_id":"SIM-sJbEHQjxgeSbPgZw","nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_speech","user_qualified"]}', '{}', '{}', 'user_qualified', 5.6, true, 1795390012902463, 1795390012905543, 1795390012915314, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (2, 1, 2, 2, NULL, NULL, 1, 'WR-API-5390', 'simulator', 'outbound', 'talking', 'NkyNoPRc2leNt-BMf3hRNNPtdXCRlvlbC9ZtoSkpL24', NULL, 'SIM-NkyNoPRc2leNt-BM', '+12025550199', '+12025550124', '{"provider":"simulator","direction":"outbound","phone_number":"+12025550124","trigger_mode":"production","telephony_configuration_id":1,"agent_identifier":"agent","agent_identifier_type":"trigger_path","workflow_uuid":"13df8a0d-d432-45f9-98eb-7101959b29e4","agent_uuid":"agent","api_key_id":1,"api_key_created_by":null,"simulated_callee":["","Yes, that is fine."],"called_number":"+12025550124","caller_number":"+12025550199"}', '{"provider":"simulator","triggered_by":"api","trigger_uuid":"agent","call_id":"SIM-NkyNoPRc2leNt-BM","nodes_visited":["Hello"]}', '{}', '{}', NULL, NULL, true, 1795390012920777, 1795390012922363, NULL, 1795391332924508, 1795390012920777, 1795391332924508, false, NULL, NULL, NULL, 1795390012920777, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (3, 1, 2, 2, NULL, NULL, 1, 'WR-API-7656', 'simulator', 'outbound', 'ringing', 'sD8Wy8SuE_3BQ70bvHiEO7_48hiF7VdAKPMVBd4rhPM', NULL, 'SIM-sD8Wy8SuE_3BQ70b', '+12025550199', '+12025550125', '{"provider":"simulator","direction":"outbound","phone_number":"+12025550125","trigger_mode":"production","telephony_configuration_id":1,"agent_identifier":"agent","agent_identifier_type":"trigger_path","workflow_uuid":"13df8a0d-d432-45f9-98eb-7101959b29e4","agent_uuid":"agent","api_key_id":1,"api_key_created_by":null,"called_number":"+12025550125","caller_number":"+12025550199"}', '{"provider":"simulator","triggered_by":"api","trigger_uuid":"agent","call_id":"SIM-sD8Wy8SuE_3BQ70b"}', '{}', '{}', NULL, NULL, false, 1795390012927571, NULL, NULL, 1795391332928689, 1795390012927571, 1795391332928689, false, NULL, NULL, NULL, 1795390012927571, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (4, 1, 2, 2, NULL, NULL, NULL, 'Chat', 'textchat', 'outbound', 'talking', 'HPu0KZLiRmUUjs7GCNtsVUVqH-pQ3BE3ArtLWVPrah8', NULL, NULL, NULL, NULL, '{}', '{"nodes_visited":["Hello"]}', '{"tester":{"source":"workflow_editor","modality":"text"}}', '{}', NULL, NULL, true, 1795390012929761, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (5, 1, 2, 2, NULL, 1, 1, 'WR-CAMPAIGN-1-1', 'simulator', 'outbound', 'completed', 'JtqPWwvWokSB0iv-IfUHXerZFSscM7x9VvSjyIdabEM', '6c9072a4-b3bd-4914-9064-e804f964f285', 'SIM-JtqPWwvWokSB0iv-', '+12025550199', '+12025552001', '{"phone_number":"+12025552001","first_name":"Caller 1","campaign_id":1,"provider":"simulator","source_uuid":"csv_d443d6eb_row_1","called_number":"+12025552001","direction":"outbound","telephony_configuration_id":1,"caller_number":"+12025550199"}', '{"provider":"simulator","triggered_by":"campaign","call_id":"SIM-JtqPWwvWokSB0iv-","nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_speech","user_qualified"]}', '{}', '{}', 'user_qualified', 5.6, true, 1795390012960332, 1795390012964350, 1795390012969836, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (6, 1, 2, 2, NULL, 1, 1, 'WR-CAMPAIGN-1-2', 'simulator', 'outbound', 'completed', 'wpAD7bne_DgGdRUN287i2pXUL7PmyOvu1mfGbzoUNo8', '406dfffc-c426-4d7e-aa91-d7caa3ab8b8b', 'SIM-wpAD7bne_DgGdRUN', '+12025550199', '+12025550101', '{"phone_number":"+12025550101","first_name":"Caller 2","campaign_id":1,"provider":"simulator","source_uuid":"csv_d443d6eb_row_2","called_number":"+12025550101","direction":"outbound","telephony_configuration_id":1,"caller_number":"+12025550199"}', '{"provider":"simulator","triggered_by":"campaign","call_id":"SIM-wpAD7bne_DgGdRUN","call_disposition":"busy","mapped_call_disposition":"busy","call_tags":["not_connected","telephony_busy"]}', '{}', '{}', 'busy', 0, false, 1795390012961237, NULL, 1795390012972812, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (7, 1, 2, 2, NULL, 1, 1, 'WR-CAMPAIGN-1-3', 'simulator', 'outbound', 'ringing', 'PvSzIToVEbhfyjwOPA0sRizV_cZRjKrRjlyRlZcCWqg', NULL, 'SIM-PvSzIToVEbhfyjwO', '+12025550199', '+12025552003', '{"phone_number":"+12025552003","first_name":"Caller 3","campaign_id":1,"provider":"simulator","source_uuid":"csv_d443d6eb_row_3","called_number":"+12025552003","direction":"outbound","telephony_configuration_id":1,"caller_number":"+12025550199"}', '{"provider":"simulator","triggered_by":"campaign","call_id":"SIM-PvSzIToVEbhfyjwO"}', '{}', '{}', NULL, NULL, false, 1795390012976022, NULL, NULL, 1795391332978099, 1795390012976022, 1795391332978099, false, NULL, NULL, NULL, 1795390012976022, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (8, 1, 2, NULL, NULL, 1, 1, 'WR-CAMPAIGN-1-4', 'simulator', 'outbound', 'prepared', 'NSjPXnuPDjFqKaj81kLoQTzopp-tBXQjFw5M8fFBN78', NULL, NULL, NULL, '+12025552004', '{}', '{}', '{}', '{}', NULL, NULL, false, 1795390012976450, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (9, 1, 3, 3, NULL, NULL, NULL, 'WR-TEXT-37CD12', 'textchat', 'outbound', 'completed', 'sFu7SJut-_QVRkOZdODHwJP-Q3siJiUa45Q7TzZqEJw', '5fcba1b3-2833-475a-9f78-c05f0e0d7692', NULL, NULL, NULL, '{}', '{"nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_qualified"]}', '{"tester":{"source":"workflow_editor","modality":"text"}}', '{}', 'user_qualified', 0.15267, true, 1795390073231977, NULL, 1795390073384647, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run VALUES (10, 1, 3, 4, '{"edges":[{"data":{"condition":"The callee agrees.","label":"Yes"},"id":"1-2","source":"1","target":"2"},{"data":{"condition":"The callee declines.","label":"No"},"id":"1-3","source":"1","target":"3"}],"nodes":[{"data":{"greeting":"Now?","name":"Hello","pre_call_fetch_enabled":true,"pre_call_fetch_url":"http://voice:gAAAAABrAuSt8iPkdYwlXjmaUd0UXnTL1xSayjM0A6rP-eYhMprl3Y9r2phgecEWw8jwHXzh5GZrT6PVTwRFnQepke0ZMhGUwy5BddU9mFHIBveCF7IaWXo=@127.0.0.1:9/fetch","prompt":"Ask."},"id":"1","position":{"x":0,"y":0},"type":"startCall"},{"data":{"name":"Fine","prompt":"Fine, goodbye."},"id":"2","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Sorry","prompt":"Sorry, goodbye."},"id":"3","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"QA","qa_api_key":"gAAAAABrAuStF_hKzQmJInGIa1x9XN30ltiOiLlAlCiV_RfIawz21yUVIPcWiQUDzU0twhm4pUiSzPTqIn8KrpDWzCl-jhS_xQ==","qa_enabled":false,"qa_endpoint":"https://voice:gAAAAABrAuSt29pTj5kPEfwfNDyIHMxKJrlzFJRWpF9uIyQYEmcGpryPzuXR1ac-Vbg5sCbp3XtgScOR3PIJbOfbK1kdT4zidrRNLWGXi6isidPjNei4s_I=@models.example","qa_model":"m","qa_provider":"azure","qa_use_workflow_llm":false},"id":"q","position":{"x":0,"y":0},"type":"qa"},{"data":{"custom_headers":[{"key":"X-Partner","value":"gAAAAABrAuStMOs0QwhAD8Gmxka5dd9Iikvr7LJuDlPjEqlVe0OXGxfa-axRctewgH1A-VNBcNg7XbpeK2VxoKy8xD4zBIXt9400MwAzPwjdgIFVzHnuofw="},{"key":"Accept","value":"application/json"}],"endpoint_url":"http://voice:gAAAAABrAuStJlucc0ArvhLrR5aMbYHPybS-Pl5zR3gaZ24QJ73blyKyWSdYWxzFM-iDK64SA1CpwpV3KkElRgxWnHdqHzfcog==@127.0.0.1:9/secret","http_method":"POST","name":"CRM","payload_template":{"run":"{{workflow_run_id}}"}},"id":"w","position":{"x":0,"y":0},"type":"webhook"}],"viewport":{"x":0,"y":0,"zoom":1}}', NULL, NULL, 'WR-TEXT-9B0673', 'textchat', 'outbound', 'completed', 'RlzcRdosAqvXNosMcYj7CvLsGMlZbnLIlQBKDuf-nUA', '16c667dd-16be-4abc-9088-40a0727f8a50', NULL, NULL, NULL, '{}', '{"nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_qualified"]}', '{"tester":{"source":"workflow_editor","modality":"text"}}', '{}', 'user_qualified', 0.052931, true, 1795390073463702, NULL, 1795390073516633, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, DEFAULT, DEFAULT, DEFAULT);
INSERT INTO public.run_count VALUES (2, 418021, 1, 'completed', 'busy', 'outbound', 'simulator', 1, true);
INSERT INTO public.run_count VALUES (2, 418021, NULL, 'open', NULL, 'outbound', 'textchat', 1, true);
INSERT INTO public.run_count VALUES (3, 418021, NULL, 'completed', 'user_qualified', 'outbound', 'textchat', 2, true);
INSERT INTO public.run_count VALUES (2, 418021, 1, 'completed', 'user_qualified', 'outbound', 'simulator', 1, true);
INSERT INTO public.run_count VALUES (2, 418021, NULL, 'open', NULL, 'outbound', 'simulator', 2, true);
INSERT INTO public.run_count VALUES (2, 418021, 1, 'open', NULL, 'outbound', 'simulator', 2, true);
INSERT INTO public.run_count VALUES (1, 418021, NULL, 'completed', 'user_qualified', 'outbound', 'simulator', 1, true);
INSERT INTO public.secret_check VALUES (1, 'check', 'gAAAAABrAuStQQlFMOoXi8xChoRk9HdbpwKGsfA9qAkFfZC_1dcy4jnvuyfPWMjydv6K3TA363y65NIpERHvo5XlGRS9gWPD4g==');
INSERT INTO public.snapshot VALUES (1, 5, NULL, '{"setup":{"initial_context":{"provider":"simulator","direction":"outbound","phone_number":"+12025550123","trigger_mode":"production","telephony_configuration_id":1,"agent_identifier":"hooked","agent_identifier_type":"trigger_path","workflow_uuid":"6fd8cd45-aebe-450a-a2ed-b963eabf4668","agent_uuid":"hooked","api_key_id":1,"api_key_created_by":null,"called_number":"+12025550123","caller_number":"+12025550199"},"configurations":{},"functions":{},"recordings":{},"direction":"outbound","voice":true},"node_id":"2","phase":"ended","started_at":1795390012.905543,"turn":1,"messages":[{"role":"assistant","content":"Hello, is now a good time?"},{"role":"user","content":"Yes, this is a good time."},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"yes","arguments":"{}"}}]},{"role":"tool","content":"{\"status\": \"done\"}","tool_call_id":"call_1"},{"role":"assistant","content":"Great, goodbye."}],"gathered_context":{"provider":"simulator","triggered_by":"api","trigger_uuid":"hooked","call_id":"SIM-sJbEHQjxgeSbPgZw","nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_speech","user_qualified"]},"missing":[],"usage":{},"number":2,"occasion":"opening","rounds":2,"silences":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":"user_qualified"}');
INSERT INTO public.snapshot VALUES (2, 3, NULL, '{"setup":{"initial_context":{"provider":"simulator","direction":"outbound","phone_number":"+12025550124","trigger_mode":"production","telephony_configuration_id":1,"agent_identifier":"agent","agent_identifier_type":"trigger_path","workflow_uuid":"13df8a0d-d432-45f9-98eb-7101959b29e4","agent_uuid":"agent","api_key_id":1,"api_key_created_by":null,"simulated_callee":["","Yes, that is fine."],"called_number":"+12025550124","caller_number":"+12025550199"},"configurations":{},"functions":{},"recordings":{},"direction":"outbound","voice":true},"node_id":"1","phase":"listening","started_at":1795390012.922363,"turn":1,"messages":[{"role":"assistant","content":"Hello, is now a good time?"},{"role":"assistant","content":"Are you still there? Hello, is now a good time?"}],"gathered_context":{"provider":"simulator","triggered_by":"api","trigger_uuid":"agent","call_id":"SIM-NkyNoPRc2leNt-BM","nodes_visited":["Hello"]},"missing":[],"usage":{},"number":1,"occasion":"idle","rounds":1,"silences":1,"caller_spoke":false,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":""}');
INSERT INTO public.snapshot VALUES (5, 5, NULL, '{"setup":{"initial_context":{"phone_number":"+12025552001","first_name":"Caller 1","campaign_id":1,"provider":"simulator","source_uuid":"csv_d443d6eb_row_1","called_number":"+12025552001","direction":"outbound","telephony_configuration_id":1,"caller_number":"+12025550199"},"configurations":{},"functions":{},"recordings":{},"direction":"outbound","voice":true},"node_id":"2","phase":"ended","started_at":1795390012.9643502,"turn":1,"messages":[{"role":"assistant","content":"Hello, is now a good time?"},{"role":"user","content":"Yes, this is a good time."},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"yes","arguments":"{}"}}]},{"role":"tool","content":"{\"status\": \"done\"}","tool_call_id":"call_1"},{"role":"assistant","content":"Great, goodbye."}],"gathered_context":{"provider":"simulator","triggered_by":"campaign","call_id":"SIM-JtqPWwvWokSB0iv-","nodes_visited":["Hello","Fine"],"call_disposition":"user_qualified","mapped_call_disposition":"user_qualified","call_tags":["user_speech","user_qualified"]},"missing":[],"usage":{},"number":2,"occasion":"opening","rounds":2,"silences":0,"caller_spoke":true,"entered":false,"calls":[],"calls_from":"","transfer_to":"","transfer_timeout":0.0,"reason":"user_qualified"}');
INSERT INTO public.status_callback VALUES (1, 1, 'ringing', NULL, '{"call_id":"SIM-sJbEHQjxgeSbPgZw","duration":null}', 1795390012904455);
INSERT INTO public.status_callback VALUES (2, 1, 'in-progress', NULL, '{"call_id":"SIM-sJbEHQjxgeSbPgZw","duration":null}', 1795390012905128);
INSERT INTO public.status_callback VALUES (3, 1, 'completed', 'completed', '{"call_id":"SIM-sJbEHQjxgeSbPgZw","duration":5.6}', 1795390012912035);
INSERT INTO public.status_callback VALUES (4, 2, 'ringing', NULL, '{"call_id":"SIM-NkyNoPRc2leNt-BM","duration":null}', 1795390012921824);
INSERT INTO public.status_callback VALUES (5, 2, 'in-progress', NULL, '{"call_id":"SIM-NkyNoPRc2leNt-BM","duration":null}', 1795390012922132);
INSERT INTO public.status_callback VALUES (6, 3, 'ringing', NULL, '{"call_id":"SIM-sD8Wy8SuE_3BQ70b","duration":null}', 1795390012928643);
INSERT INTO public.status_callback VALUES (7, 5, 'ringing', NULL, '{"call_id":"SIM-JtqPWwvWokSB0iv-","duration":null}', 1795390012963545);
INSERT INTO public.status_callback VALUES (8, 5, 'in-progress', NULL, '{"call_id":"SIM-JtqPWwvWokSB0iv-","duration":null}', 1795390012963994);
INSERT INTO public.status_callback VALUES (9, 5, 'completed', 'completed', '{"call_id":"SIM-JtqPWwvWokSB0iv-","duration":5.6}', 1795390012968142);
INSERT INTO public.status_callback VALUES (10, 6, 'ringing', NULL, '{"call_id":"SIM-wpAD7bne_DgGdRUN","duration":null}', 1795390012971549);
INSERT INTO public.status_callback VALUES (11, 6, 'busy', 'busy', '{"call_id":"SIM-wpAD7bne_DgGdRUN","duration":0.0}', 1795390012972088);
INSERT INTO public.status_callback VALUES (12, 7, 'ringing', NULL, '{"call_id":"SIM-PvSzIToVEbhfyjwO","duration":null}', 1795390012978023);
INSERT INTO public.step VALUES (1, 0, '{"kind":"Started","at":1795390012.905543}');
INSERT INTO public.step VALUES (1, 1, '{"kind":"CallerSaid","at":1795390012.908468,"text":"Yes, this is a good time."}');
INSERT INTO public.step VALUES (1, 2, '{"kind":"ModelReplied","at":1795390012.909769,"number":1,"model":"","usage":{},"seconds":0.0,"text":"","calls":[{"id":"call_1","name":"yes","arguments":"{}"}]}');
INSERT INTO public.step VALUES (1, 3, '{"kind":"ModelReplied","at":1795390012.910052,"number":2,"model":"","usage":{},"seconds":0.0,"text":"Great, goodbye.","calls":[]}');
INSERT INTO public.step VALUES (1, 4, '{"kind":"CallEnded","at":1795390012.91475,"reason":"user_hangup"}');
INSERT INTO public.step VALUES (2, 0, '{"kind":"Started","at":1795390012.922363}');
INSERT INTO public.step VALUES (2, 1, '{"kind":"CallerSilent","at":1795390012.9236972}');
INSERT INTO public.step VALUES (2, 2, '{"kind":"ModelReplied","at":1795390012.9241261,"number":1,"model":"","usage":{},"seconds":0.0,"text":"Are you still there? Hello, is now a good time?","calls":[]}');
INSERT INTO public.step VALUES (5, 0, '{"kind":"Started","at":1795390012.9643502}');
INSERT INTO public.step VALUES (5, 1, '{"kind":"CallerSaid","at":1795390012.965897,"text":"Yes, this is a good time."}');
INSERT INTO public.step VALUES (5, 2, '{"kind":"ModelReplied","at":1795390012.9665072,"number":1,"model":"","usage":{},"seconds":0.0,"text":"","calls":[{"id":"call_1","name":"yes","arguments":"{}"}]}');
INSERT INTO public.step VALUES (5, 3, '{"kind":"ModelReplied","at":1795390012.9667332,"number":2,"model":"","usage":{},"seconds":0.0,"text":"Great, goodbye.","calls":[]}');
INSERT INTO public.step VALUES (5, 4, '{"kind":"CallEnded","at":1795390012.9695091,"reason":"user_hangup"}');
INSERT INTO public.telephony_configuration VALUES (1, 1, 'Simulator', 'simulator', 'gAAAAABrAokW7aPcc9N9qFr2IwMEnR8HO5srMGZ00WvUpn8HmmGHT-nxupA7WaZjjZIjmIpDwj6nzOwdQIw-HzN9S3HLJ47q_kanf30-llS3_StPgEiF8_o=', NULL, NULL, NULL, true, false, NULL, NULL, 1795390012768452, 1795390012768454);
INSERT INTO public.telephony_configuration VALUES (2, 1, 'Carrier', 'twilio', 'gAAAAABrAokWvVGTc8LyQkiuPMdT3fYqjGOC0TjdnWAXx5Dicmex430WRd-bx67yaf9H06hGTpuxgHT2Pu0TtUye5WsDMxdxldcjsmu-Rt_vn1wm64_PUkOnAG9bxn_dEAcYrVh5F2yp0qDNXGTKNmoxEXKoDYtV7-sdozAXoyfzV0B521jVA_yWzrJ2iQtrDTJYTpia5xKbORV-NH8WxDhiIL3Kq9ljy4uro_Cre68-9nmwQePV1AE=', 'AC00000000000000000000000000000000', 0.5, 1795390015007394, false, false, NULL, NULL, 1795390013005295, 1795390013005298);
INSERT INTO public.tool VALUES (1, 1, '55a1bab9-2511-494e-b7c0-70a06cd64c5f', 'Look up', NULL, 'http_api', 'globe', '#3B82F6', 'active', '{"type":"http_api","schema_version":1,"config":{"method":"GET","url":"http://voice:gAAAAABrAuStBDG2-gOVbTCGGhYBS8D5MTD-2hzX-qX-UvN09x3LlPkt-L6yvm47HHu211p5DSwF5Z5GUgxc2EX7BRSiJG9DCw==@127.0.0.1:9/look","headers":{"Accept":"text/plain","X-Api-Key":"gAAAAABrAuStsk6e9hK8jMehsRDw_1ZTdDNM0eJLbZdEXp3flfJrqbtshoYvKgLPJZwZkjEpAqEDlV28MkxO6jGtKaa7Fmjo2A=="},"credential_uuid":null,"parameters":null,"preset_parameters":null,"timeout_ms":5000,"customMessage":null,"customMessageType":null,"customMessageRecordingId":null,"body_template":null}}', 1795390073539716, NULL);
INSERT INTO public.tool VALUES (2, 1, 'cd1c1971-8a0a-4f47-8e3f-8decb61750c1', 'Transfer', NULL, 'transfer_call', 'globe', '#3B82F6', 'active', '{"type":"transfer_call","schema_version":1,"config":{"destination_source":"dynamic","destination":"","messageType":"none","customMessage":null,"audioRecordingId":null,"timeout":30,"parameters":null,"resolver":{"type":"http","url":"http://voice:gAAAAABrAuStfwnlJYv01Ub6tHOwOj_8zQM2iscR5MhrA2qCJOmfp8D0c9zmu72ZOC9Nt6Kv4RT6axXhN5TUEQmUl4o3PhH1S3Ccdxz1pNfRAsdrUwXTyUk=@127.0.0.1:9/who","headers":{"Authorization":"gAAAAABrAuSty-Z4q8AXd_6BpB_8EbBH76NGV-h1vBbsR8JvAnfoKEpsB3kIEdqd0t_jufkml-vh0F-nCmwg8fOKja52HKJ0yBkxnZdj9LDzSv1nn89_oW0="},"credential_uuid":null,"timeout_ms":3000,"wait_message":null,"parameters":null,"preset_parameters":null},"context_mapping":null}}', 1795390073550643, NULL);
INSERT INTO public.trigger_path VALUES (1, 'hooked', 1);
INSERT INTO public.trigger_path VALUES (2, 'agent', 2);
INSERT INTO public.turn VALUES (1, 0, '', '[{"kind":"Say","text":"Hello, is now a good time?","interruptible":false},{"kind":"Listen","timeout_seconds":10.0,"interruptible":false}]', 1795390012905543, 1795390012906686, '20850-977bb8f5', 1795390012906686);
INSERT INTO public.turn VALUES (1, 1, 'Yes, this is a good time.', '[{"kind":"Say","text":"Great, goodbye.","interruptible":false},{"kind":"HangUp"}]', 1795390012908468, 1795390012910244, '20850-977bb8f5', 1795390012910244);
INSERT INTO public.turn VALUES (2, 0, '', '[{"kind":"Say","text":"Hello, is now a good time?","interruptible":false},{"kind":"Listen","timeout_seconds":10.0,"interruptible":false}]', 1795390012922363, 1795390012922971, '20850-977bb8f5', 1795390012922971);
INSERT INTO public.turn VALUES (2, 1, '', '[{"kind":"Say","text":"Are you still there? Hello, is now a good time?","interruptible":false},{"kind":"Listen","timeout_seconds":10.0,"interruptible":false}]', 1795390012923697, 1795390012924240, '20850-977bb8f5', 1795390012924240);
INSERT INTO public.turn VALUES (5, 0, '', '[{"kind":"Say","text":"Hello, is now a good time?","interruptible":false},{"kind":"Listen","timeout_seconds":10.0,"interruptible":false}]', 1795390012964350, 1795390012965003, '20850-977bb8f5', 1795390012965003);
INSERT INTO public.turn VALUES (5, 1, 'Yes, this is a good time.', '[{"kind":"Say","text":"Great, goodbye.","interruptible":false},{"kind":"HangUp"}]', 1795390012965897, 1795390012966901, '20850-977bb8f5', 1795390012966901);
INSERT INTO public.upload VALUES (1, 1, 'campaigns/1/42642c41-952d-4b0f-a675-9612bec8d118_Running.csv', '\x70686f6e655f6e756d6265722c66697273745f6e616d650a2b31323032353535323030312c43616c6c657220310a2b31323032353535303130312c43616c6c657220320a2b31323032353535323030332c43616c6c657220330a2b31323032353535323030342c43616c6c657220340a2b31323032353535323030352c43616c6c657220350a31322c43616c6c657220360a', 1795390012941698);
INSERT INTO public.upload VALUES (2, 1, 'campaigns/1/c3988879-fb44-4e38-add2-b3518590f311_Paused.csv', '\x70686f6e655f6e756d6265722c66697273745f6e616d650a2b31323032353535323031312c43616c6c657220310a2b31323032353535323031322c43616c6c657220320a', 1795390012978291);
INSERT INTO public.upload VALUES (3, 1, 'campaigns/1/d408ebff-5a8a-4533-a42d-03a07d722259_Syncing.csv', '\x70686f6e655f6e756d6265722c66697273745f6e616d650a2b31323032353535323032312c43616c6c657220310a2b31323032353535323032322c43616c6c657220320a2b31323032353535323032332c43616c6c657220330a', 1795390012990677);
INSERT INTO public.upload VALUES (4, 1, 'campaigns/1/75d165e9-60a8-450a-8513-d87c395b0ca8_Created.csv', '\x70686f6e655f6e756d6265722c66697273745f6e616d650a2b31323032353535323033312c43616c6c657220310a', 1795390012999898);
INSERT INTO public.voiceapi_schema VALUES (6);
INSERT INTO public.workflow VALUES (1, 1, '6fd8cd45-aebe-450a-a2ed-b963eabf4668', 'Hooked', 'active', 0, 1795390012862057);
INSERT INTO public.workflow VALUES (2, 1, '13df8a0d-d432-45f9-98eb-7101959b29e4', 'Agent', 'active', 0, 1795390012864185);
INSERT INTO public.workflow VALUES (3, 1, '32b0ec9f-1b17-48a3-a59d-20513988a2b4', 'Secrets', 'active', 0, 1795390073226343);
INSERT INTO public.workflow_count VALUES (1, 1, true);
INSERT INTO public.workflow_count VALUES (2, 7, true);
INSERT INTO public.workflow_count VALUES (3, 2, true);
INSERT INTO public.workflow_version VALUES (1, 1, 1, 'published', '{"edges":[{"data":{"condition":"The callee agrees.","label":"Yes"},"id":"1-2","source":"1","target":"2"},{"data":{"condition":"The callee declines.","label":"No"},"id":"1-3","source":"1","target":"3"}],"nodes":[{"data":{"greeting":"Hello, is now a good time?","name":"Hello","prompt":"Ask whether now is good."},"id":"1","position":{"x":0,"y":0},"type":"startCall"},{"data":{"name":"Fine","prompt":"Great, goodbye."},"id":"2","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Sorry","prompt":"Sorry, goodbye."},"id":"3","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Trigger","trigger_path":"hooked"},"id":"t","position":{"x":0,"y":0},"type":"trigger"},{"data":{"endpoint_url":"http://127.0.0.1:9/hook","name":"Hook","payload_template":{"run":"{{workflow_run_id}}"}},"id":"w","position":{"x":0,"y":0},"type":"webhook"}],"viewport":{"x":0,"y":0,"zoom":1}}', '{}', '{}', 1795390012862219, 1795390012862211);
INSERT INTO public.workflow_version VALUES (2, 2, 1, 'published', '{"edges":[{"data":{"condition":"The callee agrees.","label":"Yes"},"id":"1-2","source":"1","target":"2"},{"data":{"condition":"The callee declines.","label":"No"},"id":"1-3","source":"1","target":"3"}],"nodes":[{"data":{"greeting":"Hello, is now a good time?","name":"Hello","prompt":"Ask whether now is good."},"id":"1","position":{"x":0,"y":0},"type":"startCall"},{"data":{"name":"Fine","prompt":"Great, goodbye."},"id":"2","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Sorry","prompt":"Sorry, goodbye."},"id":"3","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Trigger","trigger_path":"agent"},"id":"t","position":{"x":0,"y":0},"type":"trigger"}],"viewport":{"x":0,"y":0,"zoom":1}}', '{}', '{}', 1795390012864230, 1795390012864227);
INSERT INTO public.workflow_version VALUES (3, 3, 1, 'published', '{"edges":[{"data":{"condition":"The callee agrees.","label":"Yes"},"id":"1-2","source":"1","target":"2"},{"data":{"condition":"The callee declines.","label":"No"},"id":"1-3","source":"1","target":"3"}],"nodes":[{"data":{"greeting":"Now?","name":"Hello","pre_call_fetch_enabled":true,"pre_call_fetch_url":"http://voice:gAAAAABrAuSt-jEw1R_l8R-kHTpUV_L6JGZsluiuASsjH7X65JPq64ISYXW08AT8DZ-eWCNKSB6TECn8YNnoGONIg9QVpUUZceSI_rUnB5GlwhLqDFtuTP8=@127.0.0.1:9/fetch","prompt":"Ask."},"id":"1","position":{"x":0,"y":0},"type":"startCall"},{"data":{"name":"Fine","prompt":"Fine, goodbye."},"id":"2","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Sorry","prompt":"Sorry, goodbye."},"id":"3","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"QA","qa_api_key":"gAAAAABrAuStNBNYJaVhUjUOGakcehnFVVngpOZ_TXFvC-cNGqGpnfr05r8bMVmBLWlFbU3qgZpUfWjgIH0q7tXUvewjraSJ5w==","qa_enabled":false,"qa_endpoint":"https://voice:gAAAAABrAuStofzf9Yn-YVEGEAF0iMvF4CZHF4FvXJF9X389S8LL7zjoJF9KbuND-uE0xyqqEGAB0Gn5tfA-4IA4TelYvUcOpwCyOA_wADXUjvccr1m8RM8=@models.example","qa_model":"m","qa_provider":"azure","qa_use_workflow_llm":false},"id":"q","position":{"x":0,"y":0},"type":"qa"},{"data":{"custom_headers":[{"key":"X-Partner","value":"gAAAAABrAuStxKOy4f-y7-RZpCQMYdQRCKv_I54NqhOvDOgG0UzQuPfjVB2NBX914IA0xFek06PFpWVDa83RuA6FyEtBtN7y38ZimGDwDmWOwSTpSsWKn8k="},{"key":"Accept","value":"application/json"}],"endpoint_url":"http://voice:gAAAAABrAuStg6KoU0mFQtHbxSeFGwztKMks7yOoJUNHzFfa8ZjdXRWWGMpGnMmLzz4f76LfIHnAtAc69SX_infRazfmuK0C0A==@127.0.0.1:9/secret","http_method":"POST","name":"CRM","payload_template":{"run":"{{workflow_run_id}}"}},"id":"w","position":{"x":0,"y":0},"type":"webhook"}],"viewport":{"x":0,"y":0,"zoom":1}}', '{}', '{}', 1795390073226549, 1795390073226539);
INSERT INTO public.workflow_version VALUES (4, 3, 2, 'draft', '{"edges":[{"data":{"condition":"The callee agrees.","label":"Yes"},"id":"1-2","source":"1","target":"2"},{"data":{"condition":"The callee declines.","label":"No"},"id":"1-3","source":"1","target":"3"}],"nodes":[{"data":{"greeting":"Now?","name":"Hello","pre_call_fetch_enabled":true,"pre_call_fetch_url":"http://voice:gAAAAABrAuStEj_dDmLwN7yE2fD9RhF6CNmC4dc1aOPuR4KM45bQipArQRLRH6X5lPpnTa-0hE6mmtJEY19NM9ki4j3ZNpcKrCUGWBZhCMi4qr_XwgIJS0c=@127.0.0.1:9/fetch","prompt":"Ask."},"id":"1","position":{"x":0,"y":0},"type":"startCall"},{"data":{"name":"Fine","prompt":"Fine, goodbye."},"id":"2","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"Sorry","prompt":"Sorry, goodbye."},"id":"3","position":{"x":0,"y":0},"type":"endCall"},{"data":{"name":"QA","qa_api_key":"gAAAAABrAuSthynIKh75RYsUM5BP8D3dOXmv5sn5yqK-HXBs5hEfTGDO8vNg96_BP2-SalUUC7Py3wnSpdqFenA8SNDCuUo2GA==","qa_enabled":false,"qa_endpoint":"https://voice:gAAAAABrAuSt0hz9F731yA2E9TWpIcxv5dWPsWrrnMB3PM1EitMFvwLMuPN_eLhpVKEJYlLtwgQoBmTnVEgLbHteJ2CH48JSplyJgK4ZooZW68fDXqDF3qc=@models.example","qa_model":"m","qa_provider":"azure","qa_use_workflow_llm":false},"id":"q","position":{"x":0,"y":0},"type":"qa"},{"data":{"custom_headers":[{"key":"X-Partner","value":"gAAAAABrAuStGp_OTVmlmA_R7Z1laY9TGev9SxXzOatRmWs1eUfaENo6A0e4wGalS2UxnfJebOyKhg4RV8F8F_ALPHfK9-dq2amZkG7GMGp9jmV02Z2iz9g="},{"key":"Accept","value":"application/json"}],"endpoint_url":"http://voice:gAAAAABrAuStU__EwtG4o52sZ7cF8XL7AFF-R2pylaWY0NVoU29VEw1OPxHTQ6NJ9AUv01tjAsIsxeBuTuuVLG3KYASMq_2QuQ==@127.0.0.1:9/secret","http_method":"POST","name":"CRM","payload_template":{"run":"{{workflow_run_id}}"}},"id":"w","position":{"x":0,"y":0},"type":"webhook"}],"viewport":{"x":0,"y":0,"zoom":1}}', '{"proxy":"http://voice:gAAAAABrAuStmHXV3djKYHJwkVSD6tPNKX3WMl-p50Srzp4Y39EMkFo360qRi67HvbtycrWkCU8slevB4WyMnQoSxweFwxpYtA==@127.0.0.1:9/","stt":{"api_key":"gAAAAABrAuStE8n5UvbEOZrT5hbvPm5_8GqYMMRJTNZTfcCi-E-unEJKmbuueVVw0uiH_Ms0klmQg5le6fLy2dNuVKBwuCzFeQ==","provider":"x"}}', '{}', 1795390073452164, NULL);
SELECT pg_catalog.setval('public.api_key_id_seq', 2, false);
SELECT pg_catalog.setval('public.campaign_id_seq', 5, false);
SELECT pg_catalog.setval('public.chat_turn_id_seq', 7, false);
SELECT pg_catalog.setval('public.contact_id_seq', 11, false);
SELECT pg_catalog.setval('public.credential_id_seq', 2, false);
SELECT pg_catalog.setval('public.decision_id_seq', 8, false);
SELECT pg_catalog.setval('public.delivery_id_seq', 4, false);
SELECT pg_catalog.setval('public.do_not_call_id_seq', 1, false);
SELECT pg_catalog.setval('public.document_id_seq', 1, false);
SELECT pg_catalog.setval('public.event_id_seq', 40, false);
SELECT pg_catalog.setval('public.idempotency_key_id_seq', 1, false);
SELECT pg_catalog.setval('public.organization_id_seq', 2, false);
SELECT pg_catalog.setval('public.outbound_call_id_seq', 1, false);
SELECT pg_catalog.setval('public.passage_id_seq', 1, false);
SELECT pg_catalog.setval('public.phone_number_id_seq', 2, false);
SELECT pg_catalog.setval('public.run_id_seq', 11, false);
SELECT pg_catalog.setval('public.secret_check_id_seq', 2, false);
SELECT pg_catalog.setval('public.status_callback_id_seq', 13, false);
SELECT pg_catalog.setval('public.telephony_configuration_id_seq', 3, false);
SELECT pg_catalog.setval('public.tool_id_seq', 3, false);
SELECT pg_catalog.setval('public.trigger_path_id_seq', 3, false);
SELECT pg_catalog.setval('public.upload_id_seq', 5, false);
SELECT pg_catalog.setval('public.webhook_secret_id_seq', 1, false);
SELECT pg_catalog.setval('public.workflow_id_seq', 4, false);
SELECT pg_catalog.setval('public.workflow_version_id_seq', 5, false);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.campaign
    ADD CONSTRAINT campaign_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.chat_session
    ADD CONSTRAINT chat_session_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.chat_turn
    ADD CONSTRAINT chat_turn_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.contact
    ADD CONSTRAINT contact_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.decision
    ADD CONSTRAINT decision_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.delivery_attempt
    ADD CONSTRAINT delivery_attempt_pkey PRIMARY KEY (delivery_id, number);
ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.do_not_call
    ADD CONSTRAINT do_not_call_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.document
    ADD CONSTRAINT document_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.document_words
    ADD CONSTRAINT document_words_pkey PRIMARY KEY (document_id);
ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.follow_up
    ADD CONSTRAINT follow_up_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.organization
    ADD CONSTRAINT organization_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbound_call
    ADD CONSTRAINT outbound_call_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.passage
    ADD CONSTRAINT passage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.passage_words
    ADD CONSTRAINT passage_words_pkey PRIMARY KEY (passage_id);
ALTER TABLE ONLY public.phone_number
    ADD CONSTRAINT phone_number_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.secret_check
    ADD CONSTRAINT secret_check_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.status_callback
    ADD CONSTRAINT status_callback_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.step
    ADD CONSTRAINT step_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.telephony_configuration
    ADD CONSTRAINT telephony_configuration_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tool
    ADD CONSTRAINT tool_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.trigger_path
    ADD CONSTRAINT trigger_path_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.turn
    ADD CONSTRAINT turn_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.upload
    ADD CONSTRAINT upload_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_secret
    ADD CONSTRAINT webhook_secret_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow
    ADD CONSTRAINT workflow_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workflow_version
    ADD CONSTRAINT workflow_version_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX api_key_key_hash ON public.api_key USING btree (key_hash);
CREATE INDEX api_key_organization_id ON public.api_key USING btree (organization_id);
CREATE INDEX campaign_active ON public.campaign USING btree (state) WHERE (state = ANY (ARRAY['syncing'::text, 'running'::text]));
CREATE INDEX campaign_organization_id ON public.campaign USING btree (organization_id);
CREATE INDEX campaign_parent_campaign_id ON public.campaign USING btree (parent_campaign_id);
CREATE INDEX campaign_telephony_configuration_id ON public.campaign USING btree (telephony_configuration_id);
CREATE INDEX campaign_workflow_id ON public.campaign USING btree (workflow_id);
CREATE INDEX chat_session_status_updated_at ON public.chat_session USING btree (status, updated_at);
CREATE INDEX chat_turn_run_id ON public.chat_turn USING btree (run_id);
CREATE UNIQUE INDEX configuration_one_default ON public.telephony_configuration USING btree (organization_id) WHERE is_default_outbound;
CREATE UNIQUE INDEX contact_campaign_id_row ON public.contact USING btree (campaign_id, "row");
CREATE INDEX contact_campaign_id_state_next_attempt_at_row ON public.contact USING btree (campaign_id, state, next_attempt_at, "row");
CREATE INDEX contact_count_key ON public.contact_count USING btree (campaign_id, state) INCLUDE (number);
CREATE INDEX contact_count_new ON public.contact_count USING btree (campaign_id) WHERE is_new;
CREATE INDEX contact_leased ON public.contact USING btree (lease_until) WHERE (lease_until IS NOT NULL);
CREATE INDEX contact_phone_number ON public.contact USING btree (hashtextextended(phone_number, (0)::bigint));
CREATE INDEX contact_run ON public.contact USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE UNIQUE INDEX credential_organization_id_name ON public.credential USING btree (organization_id, hashtextextended(name, (0)::bigint));
CREATE UNIQUE INDEX credential_uuid ON public.credential USING btree (uuid);
CREATE INDEX decision_campaign_id_code_at ON public.decision USING btree (campaign_id, code, at);
CREATE INDEX decision_contact_id ON public.decision USING btree (contact_id);
CREATE INDEX delivery_count_key ON public.delivery_count USING btree (organization_id, state) INCLUDE (number);
CREATE INDEX delivery_count_new ON public.delivery_count USING btree (organization_id) WHERE is_new;
CREATE UNIQUE INDEX delivery_delivery_uuid ON public.delivery USING btree (delivery_uuid);
CREATE INDEX delivery_due ON public.delivery USING btree (next_attempt_at) WHERE (next_attempt_at IS NOT NULL);
CREATE INDEX delivery_organization_id_state ON public.delivery USING btree (organization_id, state);
CREATE UNIQUE INDEX delivery_run_id_node_id ON public.delivery USING btree (run_id, hashtextextended(node_id, (0)::bigint));
CREATE UNIQUE INDEX do_not_call_organization_id_phone_number ON public.do_not_call USING btree (organization_id, hashtextextended(phone_number, (0)::bigint));
CREATE UNIQUE INDEX document_document_uuid ON public.document USING btree (document_uuid);
CREATE INDEX document_organization_id ON public.document USING btree (organization_id);
CREATE INDEX event_run_id ON public.event USING btree (run_id);
CREATE INDEX follow_up_due_at ON public.follow_up USING btree (due_at);
CREATE INDEX idempotency_key_created_at ON public.idempotency_key USING btree (created_at);
CREATE UNIQUE INDEX idempotency_key_organization_id_operation_key ON public.idempotency_key USING btree (organization_id, operation, key);
CREATE INDEX idempotency_key_run_id ON public.idempotency_key USING btree (run_id);
CREATE UNIQUE INDEX number_one_default ON public.phone_number USING btree (telephony_configuration_id) WHERE is_default_caller_id;
CREATE UNIQUE INDEX organization_name ON public.organization USING btree (name);
CREATE INDEX outbound_call_organization_id_at ON public.outbound_call USING btree (organization_id, at);
CREATE INDEX passage_document_id ON public.passage USING btree (document_id);
CREATE INDEX passage_words_words ON public.passage_words USING gin (words);
CREATE INDEX phone_number_inbound_workflow_id ON public.phone_number USING btree (inbound_workflow_id);
CREATE INDEX phone_number_organization_id ON public.phone_number USING btree (organization_id);
CREATE UNIQUE INDEX phone_number_organization_id_address_normalized ON public.phone_number USING btree (organization_id, hashtextextended(address_normalized, (0)::bigint));
CREATE INDEX phone_number_telephony_configuration_id ON public.phone_number USING btree (telephony_configuration_id);
CREATE INDEX run_by_duration ON public.run USING btree (workflow_id, duration, id);
CREATE INDEX run_by_duration_falling ON public.run USING btree (workflow_id, duration DESC NULLS LAST, id DESC);
CREATE INDEX run_by_id ON public.run USING btree (workflow_id, id);
CREATE INDEX run_by_name ON public.run USING btree (workflow_id, name_key, id);
CREATE INDEX run_by_tag ON public.run USING gin (tags);
CREATE INDEX run_count_key ON public.run_count USING btree (workflow_id, span, campaign_id, state, disposition, call_type, mode) INCLUDE (number);
CREATE INDEX run_count_new ON public.run_count USING btree (workflow_id) WHERE is_new;
CREATE INDEX run_in_progress ON public.run USING btree (organization_id, slot_until) WHERE (deadline_at IS NOT NULL);
CREATE INDEX run_of_campaign ON public.run USING btree (campaign_id, created_at, id, state, disposition_key, duration, name_key) WHERE (campaign_id IS NOT NULL);
CREATE INDEX run_of_workflow ON public.run USING btree (workflow_id, created_at, id, state, disposition_key, duration, call_type, mode, campaign_id, name_key);
CREATE UNIQUE INDEX run_one_inbound_call ON public.run USING btree (telephony_configuration_id, hashtextextended(carrier_call_id, (0)::bigint)) WHERE (call_type = 'inbound'::text);
CREATE INDEX run_open ON public.run USING btree (workflow_id, created_at, id) WHERE (state <> 'completed'::text);
CREATE INDEX run_organization_id_created_at_id ON public.run USING btree (organization_id, created_at, id);
CREATE UNIQUE INDEX run_public_access_token ON public.run USING btree (public_access_token);
CREATE UNIQUE INDEX run_token ON public.run USING btree (token);
CREATE UNIQUE INDEX secret_check_name ON public.secret_check USING btree (name);
CREATE INDEX status_callback_run_id ON public.status_callback USING btree (run_id);
CREATE INDEX telephony_configuration_organization_id ON public.telephony_configuration USING btree (organization_id);
CREATE UNIQUE INDEX telephony_configuration_organization_id_name ON public.telephony_configuration USING btree (organization_id, name);
CREATE INDEX tool_organization_id ON public.tool USING btree (organization_id);
CREATE UNIQUE INDEX tool_tool_uuid ON public.tool USING btree (tool_uuid);
CREATE UNIQUE INDEX trigger_path_path ON public.trigger_path USING btree (path);
CREATE INDEX trigger_path_workflow_id ON public.trigger_path USING btree (workflow_id);
CREATE UNIQUE INDEX upload_file_key ON public.upload USING btree (file_key);
CREATE INDEX upload_organization_id ON public.upload USING btree (organization_id);
CREATE INDEX webhook_secret_organization_id ON public.webhook_secret USING btree (organization_id);
CREATE INDEX workflow_count_key ON public.workflow_count USING btree (workflow_id) INCLUDE (number);
CREATE INDEX workflow_count_new ON public.workflow_count USING btree (workflow_id) WHERE is_new;
CREATE UNIQUE INDEX workflow_one_draft ON public.workflow_version USING btree (workflow_id) WHERE (status = 'draft'::text);
CREATE UNIQUE INDEX workflow_one_published ON public.workflow_version USING btree (workflow_id) WHERE (status = 'published'::text);
CREATE INDEX workflow_organization_id ON public.workflow USING btree (organization_id);
CREATE INDEX workflow_version_workflow_id ON public.workflow_version USING btree (workflow_id);
CREATE UNIQUE INDEX workflow_version_workflow_id_version_number ON public.workflow_version USING btree (workflow_id, version_number);
CREATE UNIQUE INDEX workflow_workflow_uuid ON public.workflow USING btree (workflow_uuid);
CREATE TRIGGER contact_count_added AFTER INSERT ON public.contact REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.contact_count_added();
CREATE TRIGGER contact_count_changed AFTER UPDATE OF state ON public.contact FOR EACH ROW WHEN (((old.campaign_id IS DISTINCT FROM new.campaign_id) OR (old.state IS DISTINCT FROM new.state))) EXECUTE FUNCTION public.contact_count_changed();
CREATE TRIGGER contact_count_emptied AFTER TRUNCATE ON public.contact FOR EACH STATEMENT EXECUTE FUNCTION public.contact_count_emptied();
CREATE TRIGGER contact_count_removed AFTER DELETE ON public.contact REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.contact_count_removed();
CREATE TRIGGER delivery_count_added AFTER INSERT ON public.delivery REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.delivery_count_added();
CREATE TRIGGER delivery_count_changed AFTER UPDATE OF state ON public.delivery FOR EACH ROW WHEN (((old.organization_id IS DISTINCT FROM new.organization_id) OR (old.state IS DISTINCT FROM new.state))) EXECUTE FUNCTION public.delivery_count_changed();
CREATE TRIGGER delivery_count_emptied AFTER TRUNCATE ON public.delivery FOR EACH STATEMENT EXECUTE FUNCTION public.delivery_count_emptied();
CREATE TRIGGER delivery_count_removed AFTER DELETE ON public.delivery REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.delivery_count_removed();
CREATE TRIGGER run_count_added AFTER INSERT ON public.run REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.run_count_added();
CREATE TRIGGER run_count_changed AFTER UPDATE OF created_at, campaign_id, state, disposition, call_type, mode ON public.run FOR EACH ROW WHEN (((old.workflow_id IS DISTINCT FROM new.workflow_id) OR ((old.created_at >> 32) IS DISTINCT FROM (new.created_at >> 32)) OR (old.campaign_id IS DISTINCT FROM new.campaign_id) OR (
        CASE old.state
            WHEN 'completed'::text THEN 'completed'::text
            ELSE 'open'::text
        END IS DISTINCT FROM
        CASE new.state
            WHEN 'completed'::text THEN 'completed'::text
            ELSE 'open'::text
        END) OR ("left"(old.disposition, 255) IS DISTINCT FROM "left"(new.disposition, 255)) OR (old.call_type IS DISTINCT FROM new.call_type) OR (old.mode IS DISTINCT FROM new.mode))) EXECUTE FUNCTION public.run_count_changed();
CREATE TRIGGER run_count_emptied AFTER TRUNCATE ON public.run FOR EACH STATEMENT EXECUTE FUNCTION public.run_count_emptied();
CREATE TRIGGER run_count_removed AFTER DELETE ON public.run REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.run_count_removed();
CREATE TRIGGER workflow_count_added AFTER INSERT ON public.run REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.workflow_count_added();
CREATE TRIGGER workflow_count_emptied AFTER TRUNCATE ON public.run FOR EACH STATEMENT EXECUTE FUNCTION public.workflow_count_emptied();
CREATE TRIGGER workflow_count_removed AFTER DELETE ON public.run REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.workflow_count_removed();
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign
    ADD CONSTRAINT campaign_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign
    ADD CONSTRAINT campaign_parent_campaign_id_fkey FOREIGN KEY (parent_campaign_id) REFERENCES public.campaign(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.campaign
    ADD CONSTRAINT campaign_telephony_configuration_id_fkey FOREIGN KEY (telephony_configuration_id) REFERENCES public.telephony_configuration(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign
    ADD CONSTRAINT campaign_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.workflow(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.chat_session
    ADD CONSTRAINT chat_session_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.chat_turn
    ADD CONSTRAINT chat_turn_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.contact
    ADD CONSTRAINT contact_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaign(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.credential
    ADD CONSTRAINT credential_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.decision
    ADD CONSTRAINT decision_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaign(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.decision
    ADD CONSTRAINT decision_contact_id_fkey FOREIGN KEY (contact_id) REFERENCES public.contact(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.delivery_attempt
    ADD CONSTRAINT delivery_attempt_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.delivery(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.delivery
    ADD CONSTRAINT delivery_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.do_not_call
    ADD CONSTRAINT do_not_call_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.document
    ADD CONSTRAINT document_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.document_words
    ADD CONSTRAINT document_words_document_id_fkey FOREIGN KEY (document_id) REFERENCES public.document(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.event
    ADD CONSTRAINT event_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.follow_up
    ADD CONSTRAINT follow_up_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.outbound_call
    ADD CONSTRAINT outbound_call_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.passage
    ADD CONSTRAINT passage_document_id_fkey FOREIGN KEY (document_id) REFERENCES public.document(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.passage_words
    ADD CONSTRAINT passage_words_passage_id_fkey FOREIGN KEY (passage_id) REFERENCES public.passage(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.phone_number
    ADD CONSTRAINT phone_number_inbound_workflow_id_fkey FOREIGN KEY (inbound_workflow_id) REFERENCES public.workflow(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.phone_number
    ADD CONSTRAINT phone_number_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.phone_number
    ADD CONSTRAINT phone_number_telephony_configuration_id_fkey FOREIGN KEY (telephony_configuration_id) REFERENCES public.telephony_configuration(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaign(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_version_id_fkey FOREIGN KEY (version_id) REFERENCES public.workflow_version(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.workflow(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.snapshot
    ADD CONSTRAINT snapshot_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.status_callback
    ADD CONSTRAINT status_callback_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.step
    ADD CONSTRAINT step_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.telephony_configuration
    ADD CONSTRAINT telephony_configuration_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tool
    ADD CONSTRAINT tool_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.trigger_path
    ADD CONSTRAINT trigger_path_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.workflow(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.turn
    ADD CONSTRAINT turn_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.run(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.upload
    ADD CONSTRAINT upload_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhook_secret
    ADD CONSTRAINT webhook_secret_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.workflow
    ADD CONSTRAINT workflow_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organization(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.workflow_version
    ADD CONSTRAINT workflow_version_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES public.workflow(id) ON DELETE CASCADE;
