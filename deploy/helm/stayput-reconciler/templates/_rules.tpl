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
