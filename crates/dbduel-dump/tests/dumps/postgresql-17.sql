--
-- PostgreSQL database dump
--

\restrict b2x0

-- Dumped from database version 17.6
SET statement_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET row_security = off;
SET default_tablespace = '';
CREATE DATABASE shop WITH TEMPLATE = template0 ENCODING = 'UTF8';
\connect shop
SET default_table_access_method = heap;

--
-- Name: item; Type: TABLE; Schema: public; Owner: shop
--
CREATE TABLE public.item (
    id integer NOT NULL,
    name text,
    note text
);
ALTER TABLE public.item OWNER TO shop;
CREATE SEQUENCE public.item_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER TABLE public.item_id_seq OWNER TO shop;
ALTER SEQUENCE public.item_id_seq OWNED BY public.item.id;
ALTER TABLE ONLY public.item ALTER COLUMN id SET DEFAULT nextval('public.item_id_seq'::regclass);

CREATE FUNCTION public.touch() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
BEGIN
  NEW.note := 'it''s; $$ done';
  RETURN NEW;
END;
$_$;

COPY public.item (id, name, note) FROM stdin;
1	one	\N
2	two\n;	x
\.

SELECT pg_catalog.setval('public.item_id_seq', 2, true);
ALTER TABLE ONLY public.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);
CREATE INDEX item_name ON public.item USING btree (name);
CREATE TRIGGER item_touch BEFORE INSERT ON public.item FOR EACH ROW EXECUTE FUNCTION public.touch();
COMMENT ON TABLE public.item IS 'things';
GRANT SELECT ON TABLE public.item TO reader;

\unrestrict b2x0
