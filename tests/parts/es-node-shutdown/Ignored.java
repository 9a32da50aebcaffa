package dev.stayput.testing;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.elasticsearch.reservedstate.ReservedClusterStateHandler;
import org.elasticsearch.reservedstate.ReservedClusterStateHandlerProvider;
import org.elasticsearch.reservedstate.TransformState;
import org.elasticsearch.xcontent.XContentParser;

/** Takes the parts of ECK's file settings for which the test distribution has no module. ECK leaves them empty. */
public class Ignored implements ReservedClusterStateHandlerProvider {
    @Override
    public Collection<ReservedClusterStateHandler<?>> handlers() {
        return List.of(new Part("slm"), new Part("ilm"));
    }

    private record Part(String name) implements ReservedClusterStateHandler<Map<String, Object>> {
        @Override
        public TransformState transform(Object source, TransformState before) {
            return before;
        }

        @Override
        public Map<String, Object> fromXContent(XContentParser parser) throws IOException {
            return parser.map();
        }
    }
}
