{{- /* Binds a ClusterRole to the reconciler: in one namespace, or everywhere. */}}
{{- define "stayput.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if .namespace }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ .name | default .role }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {app.kubernetes.io/name: stayput-reconciler}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: stayput-reconciler
    namespace: {{ .release }}
{{- end }}
