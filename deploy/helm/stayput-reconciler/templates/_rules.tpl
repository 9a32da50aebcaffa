{{- /* Made from deploy/everywhere.yaml: see tests/it/chart.rs. */}}
{{- define "stayput.rules" -}}
rules:
  # Patches annotations (requests) and the finalizer (debts). It never changes the spec.
  - apiGroups: [stayput.dev]
    resources: [searchclusters]
    verbs: [get, list, watch, patch]
  - apiGroups: [stayput.dev]
    resources: [searchclusters/status]
    verbs: [get, update, patch]
  # Phases are annotations on pods. No pod is ever created; to delete one it needs deploy/replace.
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch, patch]
  # Only single objects that a SearchCluster names, or its pods: never listed, never
  # watched.
  - apiGroups: [""]
    resources: [secrets, configmaps]
    verbs: [get]
  # To see whether the owner is about to replace a pod, and an edit of its template (spec.update).
  - apiGroups: [apps]
    resources: [statefulsets]
    verbs: [get, watch]
  # Only with spec.update: what a pod was made from, and another size for a living pod.
  - apiGroups: [apps]
    resources: [controllerrevisions]
    verbs: [get]
  - apiGroups: [""]
    resources: [pods/resize]
    verbs: [patch]
  # Only while a node drains: whether Services still send requests to it. Without this right a drain
  # takes 10 s.
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [list, watch]
  - apiGroups: [events.k8s.io]
    resources: [events]
    verbs: [create, patch]
{{- end }}
{{- /* Made from deploy/declared.yaml: see tests/it/chart.rs. */}}
{{- define "stayput.rules.declared" -}}
rules:
  # The config of each node set. Kubernetes cannot limit `list` to a label: with this role the
  # reconciler could read every Secret there. It lists those with the label of a SearchCluster, and
  # deletes those of node sets that are gone.
  - apiGroups: [""]
    resources: [secrets]
    verbs: [list, create, patch, delete]
  # The names of the first masters.
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [create, patch]
  # By which the nodes find each other.
  - apiGroups: [""]
    resources: [services]
    verbs: [get, create, patch]
  # Before nodes are made: whether somebody else's volume claim has the name of theirs.
  - apiGroups: [""]
    resources: [persistentvolumeclaims]
    verbs: [list]
  # Deleted are those of node sets that are gone, once they have no pods.
  - apiGroups: [apps]
    resources: [statefulsets]
    verbs: [list, create, patch, delete]
{{- end }}
{{- /* Made from deploy/replace/role.yaml: see tests/it/chart.rs. */}}
{{- define "stayput.rules.replace" -}}
rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [delete]
  # Whether the apiserver would take the new pod. admission-policy.yaml allows nothing but dry runs:
  # leave this rule out where that is not installed (before Kubernetes 1.30), and no pod is replaced.
  - apiGroups: [""]
    resources: [pods]
    verbs: [create]
  # Whether a pod whose volume is on one node fits there again: what the others on it request. And
  # whether the new pod is on the same claims.
  - apiGroups: [""]
    resources: [persistentvolumeclaims, persistentvolumes, nodes]
    verbs: [get]
  # Whether a volume is on one node alone.
  - apiGroups: [""]
    resources: [nodes]
    verbs: [list]
  - apiGroups: [""]
    resources: [pods]
    verbs: [list]
{{- end }}
