{{/* Fails with a sentence. `helm lint` takes no notice of `fail`, so what comes behind it is no YAML. */}}
{{- define "gantry.refuse" -}}
{{- fail . -}}
{{ printf "refused: [%s" . }}
{{ end -}}

{{/* Values that cannot work together, each with one sentence. */}}
{{- define "gantry.checks" -}}
{{- $v := .Values -}}
{{- $postgresql := eq $v.database.kind "postgresql" -}}
{{- if and $v.postgresql.enabled (not $postgresql) -}}
{{ include "gantry.refuse" "postgresql.enabled starts a database that the server would not use: set database.kind to postgresql." }}
{{- end -}}
{{- if and $v.postgresql.enabled $v.database.existingSecret -}}
{{ include "gantry.refuse" "postgresql.enabled and database.existingSecret name two databases: set one of them." }}
{{- end -}}
{{- if and $postgresql (not $v.postgresql.enabled) (not $v.database.existingSecret) -}}
{{ include "gantry.refuse" "database.kind is postgresql, and no database is named: set database.existingSecret to a Secret with its URL, or postgresql.enabled to try it out." }}
{{- end -}}
{{- if and (not $postgresql) $v.database.existingSecret -}}
{{ include "gantry.refuse" "database.existingSecret is set, but database.kind is sqlite: set database.kind to postgresql." }}
{{- end -}}
{{- $volume := include "gantry.volume" . -}}
{{- if and $v.persistence.existingClaim (not $volume) -}}
{{ include "gantry.refuse" "persistence.existingClaim names a volume that the server would not use: set persistence.enabled to true." }}
{{- end -}}
{{- if and (not $postgresql) (not $volume) -}}
{{ include "gantry.refuse" "SQLite without a volume would lose everything with its pod: set persistence.enabled to true, or database.kind to postgresql." }}
{{- end -}}
{{- if and (not $volume) (not $v.keys.existingSecret) -}}
{{ include "gantry.refuse" "without a volume the server's keys would be lost with its pod, and no runner would trust the next one: set keys.existingSecret, or persistence.enabled to true." }}
{{- end -}}
{{- if gt (int $v.replicas) 1 -}}
{{- if not $postgresql -}}
{{ include "gantry.refuse" (printf "replicas is %d, and a database of SQLite has one server: set database.kind to postgresql, or replicas to 1." (int $v.replicas)) }}
{{- end -}}
{{- if $volume -}}
{{ include "gantry.refuse" (printf "replicas is %d, and one server at a time uses the folder on a volume: set keys.existingSecret and leave persistence.enabled out, or set replicas to 1." (int $v.replicas)) }}
{{- end -}}
{{- if not (include "gantry.masterKey" .) -}}
{{ include "gantry.refuse" (printf "replicas is %d, and servers know one another by a secret that needs a master key: set masterKey.existingSecret, or replicas to 1." (int $v.replicas)) }}
{{- end -}}
{{- end -}}
{{- if and (include "gantry.peers" .) (eq (int $v.peers.port) 7000) -}}
{{ include "gantry.refuse" "peers.port is 7000, where the server answers clients: set another one." }}
{{- end -}}
{{- $tls := list -}}
{{- if $v.tls.existingSecret -}}{{- $tls = append $tls "tls.existingSecret" -}}{{- end -}}
{{- if $v.tls.selfSigned -}}{{- $tls = append $tls "tls.selfSigned" -}}{{- end -}}
{{- if $v.tls.certManager.enabled -}}{{- $tls = append $tls "tls.certManager.enabled" -}}{{- end -}}
{{- if gt (len $tls) 1 -}}
{{ include "gantry.refuse" (printf "%s each give the server a certificate: set one of them." (join " and " $tls)) }}
{{- end -}}
{{- if and $v.tls.selfSigned $v.keys.existingSecret -}}
{{ include "gantry.refuse" "tls.selfSigned needs a folder of keys that the server can write to, and keys.existingSecret is read-only: use tls.existingSecret or tls.certManager." }}
{{- end -}}
{{- if and $v.tls.certManager.enabled (not $v.tls.certManager.issuerRef.name) -}}
{{ include "gantry.refuse" "tls.certManager.enabled needs an issuer: set tls.certManager.issuerRef.name." }}
{{- end -}}
{{- if and $tls $v.clientAddressHeader -}}
{{ include "gantry.refuse" "clientAddressHeader is believed only behind a proxy that ends TLS, and the server serves TLS itself: unset one of them." }}
{{- end -}}
{{- if and (not $tls) (ne $v.service.type "ClusterIP") -}}
{{ include "gantry.refuse" (printf "service.type %s would show plain text outside the cluster: set a certificate under tls, or service.type to ClusterIP." $v.service.type) }}
{{- end -}}
{{- if and $v.service.externalTrafficPolicy (eq $v.service.type "ClusterIP") -}}
{{ include "gantry.refuse" "service.externalTrafficPolicy is for a Service that is reached from outside: set service.type to LoadBalancer or NodePort." }}
{{- end -}}
{{- if eq (int $v.service.grpcPort) (int (include "gantry.servicePort" .)) -}}
{{ include "gantry.refuse" "service.port and service.grpcPort are the same: set another grpcPort." }}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.host) -}}
{{ include "gantry.refuse" "ingress.enabled needs ingress.host, because the server answers only for names that it knows." }}
{{- end -}}
{{- if and $v.gateway.enabled (or (not $v.gateway.parentRefs) (not $v.gateway.hostnames)) -}}
{{ include "gantry.refuse" "gateway.enabled needs gateway.parentRefs and gateway.hostnames: the Gateways, and the names for which the server answers." }}
{{- end -}}
{{- if le (int $v.terminationGracePeriodSeconds) (add (int $v.preStopSeconds) 10 | int) -}}
{{ include "gantry.refuse" "terminationGracePeriodSeconds includes preStopSeconds and must leave the server more than 10 seconds to stop: raise it." }}
{{- end -}}
{{- if and $v.metrics.serviceMonitor.enabled (not $v.metrics.existingSecret) -}}
{{ include "gantry.refuse" "metrics.serviceMonitor.enabled needs metrics.existingSecret, because /metrics asks for a key of scope metrics." }}
{{- end -}}
{{- if and $v.metrics.prometheusRule.enabled (not $v.metrics.serviceMonitor.enabled) -}}
{{ include "gantry.refuse" "metrics.prometheusRule.enabled needs metrics.serviceMonitor.enabled, whose metrics its alerts ask for." }}
{{- end -}}
{{- if hasPrefix "https:" $v.traces.endpoint -}}
{{ include "gantry.refuse" "traces.endpoint is https, and traces are sent by plain http: name a collector in this cluster, which may send them on by https." }}
{{- end -}}
{{- if and $v.model.existingSecret (not (dig "model" "name" "" $v.config)) -}}
{{ include "gantry.refuse" "model.existingSecret has a key, and no model is named: set config.model.name." }}
{{- end -}}
{{- if and (dig "model" "name" "" $v.config) (not $v.model.existingSecret) (not (dig "model" "base_url" "" $v.config)) -}}
{{ include "gantry.refuse" "config.model.name names a model without a way to reach it: set model.existingSecret, or config.model.base_url for a server without keys." }}
{{- end -}}
{{- if $v.runner.enabled -}}
{{- if not $v.runner.existingSecret -}}
{{ include "gantry.refuse" "runner.enabled needs runner.existingSecret, a Secret with a join token: see docs/kubernetes.md." }}
{{- end -}}
{{- if and (not $v.runner.server) (not $tls) (not $v.runner.allowPlainText) -}}
{{ include "gantry.refuse" "runners would reach the server by plain text: set a certificate under tls, runner.server to an https address, or runner.allowPlainText to true." }}
{{- end -}}
{{- end -}}
{{- $ours := include "gantry.env" . | fromYamlArray -}}
{{- /* These would change what the chart has chosen elsewhere: probes, the strategy, the volume, the policies. */ -}}
{{- range list "GANTRY_DATABASE_URL" "GANTRY_PEER_LISTEN" "GANTRY_PEER_ADDRESS" "GANTRY_TLS" "GANTRY_BEHIND_PROXY" -}}
{{- $ours = append $ours (dict "name" .) -}}
{{- end -}}
{{- $known := list "server" "migrate" -}}
{{- range concat $v.extraContainers $v.extraInitContainers -}}
{{- if has .name $known -}}
{{ include "gantry.refuse" (printf "the pod has a container %s twice: give one of extraContainers or extraInitContainers another name." .name) }}
{{- end -}}
{{- $known = append $known .name -}}
{{- end -}}
{{- include "gantry.checkEnv" (list "extraEnv" $ours $v.extraEnv) -}}
{{- include "gantry.checkEnv" (list "runner.extraEnv" (include "gantry.runnerEnv" . | fromYamlArray) $v.runner.extraEnv) -}}
{{- end -}}

{{/* Fails on a variable that has two values. Call with (list "extraEnv" the-chart's the-user's). */}}
{{- define "gantry.checkEnv" -}}
{{- $where := index . 0 -}}
{{- $ours := list -}}
{{- range index . 1 -}}{{- $ours = append $ours .name -}}{{- end -}}
{{- $seen := list -}}
{{- range index . 2 -}}
{{- if has .name $ours -}}
{{ include "gantry.refuse" (printf "%s has %s, which the chart sets itself: use the value of the chart that stands for it." $where .name) }}
{{- end -}}
{{- if has .name $seen -}}
{{ include "gantry.refuse" (printf "%s has %s twice: keep one of them." $where .name) }}
{{- end -}}
{{- $seen = append $seen .name -}}
{{- end -}}
{{- end -}}
