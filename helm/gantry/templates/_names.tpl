{{/* The name of every object of the server. */}}
{{- define "gantry.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are selected; they never change. Call with (list $ "server"). */}}
{{- define "gantry.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of an object: the chart's, and those of the values, further ones of the object before those of all. Call
     with (list $ "server"), and a map of further labels where there are some. */}}
{{- define "gantry.labels" -}}
{{- $root := index . 0 -}}
{{ include "gantry.selector" (list $root (index . 1)) }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- $further := dict -}}
{{- if gt (len .) 2 -}}{{- $further = deepCopy (index . 2) -}}{{- end -}}
{{- with mergeOverwrite (deepCopy $root.Values.commonLabels) $further }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An image. Call with (list $ .Values.image). */}}
{{- define "gantry.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default $root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* The name of the ServiceAccount. */}}
{{- define "gantry.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "gantry.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The server's address within the cluster, without a port. */}}
{{- define "gantry.host" -}}
{{ include "gantry.fullname" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* The server's URL within the cluster. */}}
{{- define "gantry.url" -}}
{{- if include "gantry.tls" . -}}https{{- else -}}http{{- end -}}://{{ include "gantry.host" . }}:{{ include "gantry.servicePort" . }}
{{- end -}}

{{- define "gantry.servicePort" -}}
{{- if .Values.service.port -}}
{{ int .Values.service.port }}
{{- else if include "gantry.tls" . -}}
443
{{- else -}}
80
{{- end -}}
{{- end -}}

{{/* "yes" where the server itself serves TLS, else nothing. */}}
{{- define "gantry.tls" -}}
{{- if or .Values.tls.existingSecret .Values.tls.selfSigned .Values.tls.certManager.enabled -}}yes{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of the server, where there is one. */}}
{{- define "gantry.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled -}}
{{ include "gantry.fullname" . }}-tls
{{- else -}}
{{ .Values.tls.existingSecret }}
{{- end -}}
{{- end -}}

{{/* "yes" where the server's folder is on a volume, else nothing. */}}
{{- define "gantry.volume" -}}
{{- if kindIs "bool" .Values.persistence.enabled -}}
{{- if .Values.persistence.enabled -}}yes{{- end -}}
{{- else if not (and (eq .Values.database.kind "postgresql") .Values.keys.existingSecret) -}}yes
{{- end -}}
{{- end -}}

{{/* "yes" where a Secret has the master key, else nothing. */}}
{{- define "gantry.masterKey" -}}
{{- if .Values.masterKey.existingSecret -}}yes
{{- else -}}
{{- range .Values.extraEnv -}}{{- if eq .name "GANTRY_MASTER_KEY" -}}yes{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* "yes" where servers answer one another, else nothing. A roll has two of them also where replicas is 1. */}}
{{- define "gantry.peers" -}}
{{- if and (eq .Values.database.kind "postgresql") (not (include "gantry.volume" .)) (include "gantry.masterKey" .) -}}yes{{- end -}}
{{- end -}}

{{/* The Secret with the URL of PostgreSQL. */}}
{{- define "gantry.databaseSecret" -}}
{{- if .Values.postgresql.enabled -}}
{{ default (printf "%s-postgresql" (include "gantry.fullname" .)) .Values.postgresql.existingSecret }}
{{- else -}}
{{ .Values.database.existingSecret }}
{{- end -}}
{{- end -}}

{{/* The names for which the server answers, each once, with commas. */}}
{{- define "gantry.serverNames" -}}
{{- $host := include "gantry.host" . -}}
{{- $short := include "gantry.fullname" . -}}
{{- $inNamespace := printf "%s.%s" $short .Release.Namespace -}}
{{- $names := list -}}
{{- if .Values.ingress.enabled -}}{{- $names = append $names .Values.ingress.host -}}{{- end -}}
{{- if .Values.gateway.enabled -}}{{- $names = concat $names .Values.gateway.hostnames -}}{{- end -}}
{{- join "," (concat .Values.names $names (list $short $inNamespace (printf "%s.svc" $inNamespace) $host) | uniq) -}}
{{- end -}}
