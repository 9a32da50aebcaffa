package dev.stayput.testing;

import java.util.List;
import org.elasticsearch.Version;
import org.elasticsearch.action.admin.cluster.state.ClusterStateRequest;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.core.TimeValue;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.action.RestToXContentListener;
import org.elasticsearch.xcontent.ToXContentObject;

/** {@code GET /}: the names and the version; ECK reads the cluster's UUID there. */
public class Root extends BaseRestHandler {
    private static final TimeValue PATIENCE = TimeValue.timeValueSeconds(30);

    @Override
    public String getName() {
        return "stayput_test_root";
    }

    @Override
    public List<Route> routes() {
        return List.of(new Route(RestRequest.Method.GET, "/"));
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
        // A real engine answers from its own state, so it also answers while there is no master.
        var state = new ClusterStateRequest(PATIENCE).clear().metadata(true).nodes(true).local(true);
        return channel -> client.admin().cluster().state(state, new RestToXContentListener<>(channel).map(answer -> {
            var metadata = answer.getState().metadata();
            return (ToXContentObject) (builder, params) -> builder.startObject()
                .field("name", answer.getState().nodes().getLocalNode().getName())
                .field("cluster_name", answer.getClusterName().value())
                .field("cluster_uuid", metadata.clusterUUID())
                .startObject("version")
                .field("number", Version.CURRENT.toString())
                .endObject()
                .endObject();
        }));
    }
}
