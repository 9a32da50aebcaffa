{{- /* Binds a role to the reconciler: in one namespace, or everywhere. */}}
{{- define "stayput.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if .namespace }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {app.kubernetes.io/name: stayput-reconciler}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: stayput-reconciler
    namespace: {{ .release }}
{{- end }}
