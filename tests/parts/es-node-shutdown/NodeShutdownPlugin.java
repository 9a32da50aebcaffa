package dev.stayput.testing;

import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.elasticsearch.action.ActionRequest;
import org.elasticsearch.action.ActionResponse;
import org.elasticsearch.cluster.metadata.IndexNameExpressionResolver;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.IndexScopedSettings;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.settings.SettingsFilter;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.RestController;
import org.elasticsearch.rest.RestHandler;

/** Gives the test distribution the routes of the node-shutdown API, and {@code GET /}; see README.md. */
public class NodeShutdownPlugin extends Plugin implements ActionPlugin {
    @Override
    public Collection<ActionHandler<? extends ActionRequest, ? extends ActionResponse>> getActions() {
        return List.of(new ActionHandler<>(ChangeRecord.TYPE, ChangeRecord.class));
    }

    @Override
    public Collection<RestHandler> getRestHandlers(
        Settings settings,
        NamedWriteableRegistry registry,
        RestController controller,
        ClusterSettings clusterSettings,
        IndexScopedSettings indexSettings,
        SettingsFilter filter,
        IndexNameExpressionResolver resolver,
        Supplier<DiscoveryNodes> nodes,
        Predicate<NodeFeature> features
    ) {
        return List.of(new Routes(), new Root());
    }
}
