{{/* The environment of the server and of its other verbs. */}}
{{- define "gantry.env" -}}
- name: GANTRY_HOME
  value: /var/lib/gantry
- name: GANTRY_CONFIG
  value: /etc/gantry/gantry.toml
- name: GANTRY_LISTEN
  value: "0.0.0.0:7000"
- name: GANTRY_NAMES
  value: {{ include "gantry.serverNames" . | quote }}
{{- if eq .Values.database.kind "postgresql" }}
- name: GANTRY_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "gantry.databaseSecret" . }}
      key: {{ ternary "url" .Values.database.key .Values.postgresql.enabled }}
{{- end }}
{{- with .Values.masterKey.existingSecret }}
# Not by a file: the group can read those of a Secret, and the server refuses such a master key.
- name: GANTRY_MASTER_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.masterKey.key }}
{{- end }}
{{- if include "gantry.peers" . }}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: GANTRY_PEER_LISTEN
  value: "0.0.0.0:{{ int .Values.peers.port }}"
- name: GANTRY_PEER_ADDRESS
  value: "$(POD_IP):{{ int .Values.peers.port }}"
{{- end }}
{{- end -}}

{{/* The environment of a runner. */}}
{{- define "gantry.runnerEnv" -}}
- name: GANTRY_HOME
  value: /var/lib/gantry
- name: HOME
  value: /workspace
- name: GANTRY_LOG_FORMAT
  value: {{ dig "log" "format" "json" .Values.config }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- with .Values.traces.endpoint }}
- name: GANTRY_RUNNER_TRACES
  value: {{ . }}
{{- end }}
{{- end -}}

{{/* What every container may do: nothing beyond its own files. */}}
{{- define "gantry.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
privileged: false
readOnlyRootFilesystem: true
{{- end -}}

{{/* What every pod may do. Call with (list user-id further), where the user id may be null: then the cluster chooses
     the ids. */}}
{{- define "gantry.podSecurity" -}}
{{- $chosen := dict "fsGroupChangePolicy" "OnRootMismatch" "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- with index . 0 -}}
{{- $chosen = mergeOverwrite $chosen (dict "fsGroup" (int .) "runAsGroup" (int .) "runAsUser" (int .)) -}}
{{- end -}}
{{ mergeOverwrite $chosen (deepCopy (index . 1)) | toYaml }}
{{- end -}}

{{/* The mounts of the server. The folder is mounted as such, so that it belongs to the server and not to root
     where a Secret is mounted below it. */}}
{{- define "gantry.mounts" -}}
- name: server
  mountPath: /var/lib/gantry/server
- name: config
  mountPath: /etc/gantry
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if .Values.keys.existingSecret }}
- name: keys
  mountPath: /var/lib/gantry/server/keys
  readOnly: true
{{- end }}
{{- if include "gantry.tlsSecret" . }}
- name: tls
  mountPath: /run/secrets/gantry/tls
  readOnly: true
{{- end }}
{{- if .Values.model.existingSecret }}
- name: model
  mountPath: /run/secrets/gantry/model
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volumes of the server. */}}
{{- define "gantry.volumes" -}}
- name: server
{{- if include "gantry.volume" . }}
  persistentVolumeClaim:
    claimName: {{ default (include "gantry.fullname" .) .Values.persistence.existingClaim }}
{{- else }}
  emptyDir: {}
{{- end }}
- name: config
  configMap:
    name: {{ include "gantry.fullname" . }}
- name: tmp
  emptyDir: {}
{{- with .Values.keys.existingSecret }}
- name: keys
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with include "gantry.tlsSecret" . }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.model.existingSecret }}
- name: model
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - key: {{ $.Values.model.key }}
        path: key
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A value of TOML. */}}
{{- define "gantry.tomlValue" -}}
{{- if kindIs "string" . -}}
{{ toJson . }}
{{- else if kindIs "bool" . -}}
{{ . }}
{{- else if kindIs "slice" . -}}
{{ toJson . }}
{{- else -}}
{{ int64 . }}
{{- end -}}
{{- end -}}

{{/* gantry.toml. */}}
{{- define "gantry.toml" -}}
[server]
behind_proxy = {{ if include "gantry.tls" . }}false{{ else }}true{{ end }}
{{- with .Values.clientAddressHeader }}
client_address_header = {{ toJson . }}
{{- end }}
{{- if include "gantry.tlsSecret" . }}

[tls]
certificate = "/run/secrets/gantry/tls/tls.crt"
key = "/run/secrets/gantry/tls/tls.key"
{{- else if .Values.tls.selfSigned }}

[tls]
self_signed = true
names = {{ splitList "," (include "gantry.serverNames" .) | toJson }}
{{- end }}
{{- if .Values.traces.endpoint }}

[traces]
endpoint = {{ toJson .Values.traces.endpoint }}
sample = {{ printf "%g" (float64 .Values.traces.sample) }}
{{- end }}
{{- range $section, $keys := .Values.config }}
{{- if or $keys (and (eq $section "model") $.Values.model.existingSecret) }}

[{{ $section }}]
{{- range $key, $value := $keys }}
{{- if not (or (kindIs "invalid" $value) (kindIs "map" $value) (eq $key "accounts")) }}
{{ $key }} = {{ include "gantry.tomlValue" $value }}
{{- end }}
{{- end }}
{{- if and (eq $section "model") $.Values.model.existingSecret }}
key_file = "/run/secrets/gantry/model/key"
{{- end }}
{{- with dig "search" dict (default dict $keys) }}

[{{ $section }}.search]
{{- range $key, $value := . }}
{{ $key }} = {{ include "gantry.tomlValue" $value }}
{{- end }}
{{- end }}
{{- range dig "accounts" list (default dict $keys) }}

[[{{ $section }}.accounts]]
{{- range $key, $value := . }}
{{ $key }} = {{ include "gantry.tomlValue" $value }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
