{{- /* Ports of a NetworkPolicy. */}}
{{- define "stayput.ports" -}}
[{{ range $index, $port := . }}{{ if $index }}, {{ end }}{port: {{ $port }}, protocol: TCP}{{ end }}]
{{- end }}
