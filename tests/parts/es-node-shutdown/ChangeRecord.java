package dev.stayput.testing;

import java.io.IOException;
import java.util.HashMap;
import java.util.Locale;
import org.elasticsearch.ResourceNotFoundException;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.action.ActionRequestValidationException;
import org.elasticsearch.action.ActionType;
import org.elasticsearch.action.support.ActionFilters;
import org.elasticsearch.action.support.master.AcknowledgedResponse;
import org.elasticsearch.action.support.master.AcknowledgedTransportMasterNodeAction;
import org.elasticsearch.action.support.master.MasterNodeRequest;
import org.elasticsearch.cluster.ClusterState;
import org.elasticsearch.cluster.ClusterStateUpdateTask;
import org.elasticsearch.cluster.block.ClusterBlockException;
import org.elasticsearch.cluster.block.ClusterBlockLevel;
import org.elasticsearch.cluster.metadata.NodesShutdownMetadata;
import org.elasticsearch.cluster.metadata.SingleNodeShutdownMetadata;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.common.Priority;
import org.elasticsearch.common.io.stream.StreamInput;
import org.elasticsearch.common.io.stream.StreamOutput;
import org.elasticsearch.common.util.concurrent.EsExecutors;
import org.elasticsearch.core.TimeValue;
import org.elasticsearch.injection.guice.Inject;
import org.elasticsearch.tasks.Task;
import org.elasticsearch.threadpool.ThreadPool;
import org.elasticsearch.transport.TransportService;

/** Puts or deletes one of the server's own records, on the elected master. */
public class ChangeRecord extends AcknowledgedTransportMasterNodeAction<ChangeRecord.Request> {
    /** The name under which the server's roles know it. */
    static final ActionType<AcknowledgedResponse> TYPE = new ActionType<>("cluster:admin/shutdown/create");

    private static final TimeValue PATIENCE = TimeValue.timeValueSeconds(30);

    private final ClusterService clusterService;

    @Inject
    public ChangeRecord(TransportService transport, ClusterService clusterService, ThreadPool threads, ActionFilters filters) {
        super(TYPE.name(), false, transport, clusterService, threads, filters, Request::new, EsExecutors.DIRECT_EXECUTOR_SERVICE);
        this.clusterService = clusterService;
    }

    @Override
    protected ClusterBlockException checkBlock(Request request, ClusterState state) {
        return state.blocks().globalBlockedException(ClusterBlockLevel.METADATA_WRITE);
    }

    @Override
    protected void masterOperation(Task task, Request request, ClusterState state, ActionListener<AcknowledgedResponse> listener) {
        submit(new ClusterStateUpdateTask(Priority.URGENT) {
            @Override
            public ClusterState execute(ClusterState before) {
                var records = new HashMap<>(before.metadata().nodeShutdowns().getAll());
                if (request.type != null) {
                    records.put(request.nodeId, request.record(before));
                } else if (records.remove(request.nodeId) == null) {
                    throw new ResourceNotFoundException("node [" + request.nodeId + "] is not currently shutting down");
                }
                return before.copyAndUpdateMetadata(
                    metadata -> metadata.putCustom(NodesShutdownMetadata.TYPE, new NodesShutdownMetadata(records))
                );
            }

            @Override
            public void clusterStateProcessed(ClusterState before, ClusterState after) {
                listener.onResponse(AcknowledgedResponse.TRUE);
            }

            @Override
            public void onFailure(Exception error) {
                listener.onFailure(error);
            }
        });
    }

    @SuppressWarnings("deprecation")
    private void submit(ClusterStateUpdateTask task) {
        clusterService.submitUnbatchedStateUpdateTask("change-node-shutdown-record", task);
    }

    /** A record to put, or, without a type, to delete. */
    public static class Request extends MasterNodeRequest<Request> {
        final String nodeId;
        final String type;
        final String reason;
        final TimeValue allocationDelay;

        Request(String nodeId, String type, String reason, TimeValue allocationDelay) {
            super(PATIENCE);
            this.nodeId = nodeId;
            this.type = type;
            this.reason = reason;
            this.allocationDelay = allocationDelay;
        }

        Request(StreamInput in) throws IOException {
            super(in);
            nodeId = in.readString();
            type = in.readOptionalString();
            reason = in.readOptionalString();
            allocationDelay = in.readOptionalTimeValue();
        }

        @Override
        public void writeTo(StreamOutput out) throws IOException {
            super.writeTo(out);
            out.writeString(nodeId);
            out.writeOptionalString(type);
            out.writeOptionalString(reason);
            out.writeOptionalTimeValue(allocationDelay);
        }

        @Override
        public ActionRequestValidationException validate() {
            return null;
        }

        SingleNodeShutdownMetadata record(ClusterState state) {
            var node = state.nodes().get(nodeId);
            return SingleNodeShutdownMetadata.builder()
                .setNodeId(nodeId)
                .setNodeEphemeralId(node == null ? null : node.getEphemeralId())
                .setNodeSeen(node != null)
                .setType(SingleNodeShutdownMetadata.Type.valueOf(type.toUpperCase(Locale.ROOT)))
                .setReason(reason)
                .setStartedAtMillis(System.currentTimeMillis())
                .setAllocationDelay(allocationDelay)
                .build();
        }
    }
}
