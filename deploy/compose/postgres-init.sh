# The image of PostgreSQL runs this once, when the database is made: the server's role must not be a superuser. The
# password stands in no argument.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
\set password `cat /run/secrets/gantry`
CREATE ROLE gantry LOGIN PASSWORD :'password';
CREATE DATABASE gantry OWNER gantry ENCODING 'UTF8' TEMPLATE template0;
SQL
