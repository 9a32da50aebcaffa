package dev.stayput.testing;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.elasticsearch.action.admin.cluster.state.ClusterStateRequest;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.metadata.SingleNodeShutdownMetadata;
import org.elasticsearch.core.TimeValue;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.action.RestToXContentListener;
import org.elasticsearch.xcontent.ToXContentObject;
import org.elasticsearch.xcontent.XContentBuilder;
import org.elasticsearch.xcontent.XContentParser;

/** {@code GET|PUT|DELETE /_nodes/{nodeId}/shutdown} and {@code GET /_nodes/shutdown}. */
public class Routes extends BaseRestHandler {
    private static final TimeValue PATIENCE = TimeValue.timeValueSeconds(30);

    @Override
    public String getName() {
        return "stayput_test_node_shutdown";
    }

    @Override
    public List<Route> routes() {
        return List.of(
            new Route(RestRequest.Method.GET, "/_nodes/shutdown"),
            new Route(RestRequest.Method.GET, "/_nodes/{nodeId}/shutdown"),
            new Route(RestRequest.Method.PUT, "/_nodes/{nodeId}/shutdown"),
            new Route(RestRequest.Method.DELETE, "/_nodes/{nodeId}/shutdown")
        );
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) throws IOException {
        String nodeId = request.param("nodeId");
        return switch (request.method()) {
            case PUT -> change(client, put(nodeId, request));
            case DELETE -> change(client, new ChangeRecord.Request(nodeId, null, null, null));
            default -> list(client, nodeId);
        };
    }

    private static ChangeRecord.Request put(String nodeId, RestRequest request) throws IOException {
        Map<String, Object> body;
        try (XContentParser parser = request.contentParser()) {
            body = parser.map();
        }
        if (body.get("type") instanceof String type && body.get("reason") instanceof String reason) {
            Object delay = body.get("allocation_delay");
            TimeValue parsed = delay == null ? null : TimeValue.parseTimeValue(delay.toString(), "allocation_delay");
            return new ChangeRecord.Request(nodeId, type, reason, parsed);
        }
        throw new IllegalArgumentException("[type] and [reason] are required");
    }

    private static RestChannelConsumer change(NodeClient client, ChangeRecord.Request request) {
        return channel -> client.execute(ChangeRecord.TYPE, request, new RestToXContentListener<>(channel));
    }

    private static RestChannelConsumer list(NodeClient client, String nodeId) {
        var state = new ClusterStateRequest(PATIENCE).clear().metadata(true);
        return channel -> client.admin().cluster().state(state, new RestToXContentListener<>(channel).map(answer -> {
            var records = answer.getState().metadata().nodeShutdowns().getAll().values();
            return (ToXContentObject) (builder, params) -> {
                builder.startObject().startArray("nodes");
                for (var record : records) {
                    if (nodeId == null || nodeId.equals(record.getNodeId())) {
                        write(builder, record);
                    }
                }
                return builder.endArray().endObject();
            };
        }));
    }

    /** Always complete, as the real one is for a restart: no shard has to move. */
    private static void write(XContentBuilder builder, SingleNodeShutdownMetadata record) throws IOException {
        builder.startObject();
        builder.field("node_id", record.getNodeId());
        builder.field("type", record.getType().toString());
        builder.field("reason", record.getReason());
        if (record.getAllocationDelay() != null) {
            builder.field("allocation_delay", record.getAllocationDelay().getStringRep());
        }
        builder.field("shutdown_startedmillis", record.getStartedAtMillis());
        builder.field("status", "COMPLETE");
        builder.startObject("shard_migration");
        builder.field("status", "COMPLETE");
        builder.field("shard_migrations_remaining", 0);
        builder.field("explanation", "no shard relocation is necessary for a node restart");
        builder.endObject();
        builder.startObject("persistent_tasks").field("status", "COMPLETE").endObject();
        builder.startObject("plugins").field("status", "COMPLETE").endObject();
        builder.endObject();
    }
}
