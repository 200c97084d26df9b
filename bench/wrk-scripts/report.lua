-- SPDX-License-Identifier: BSD-2-Clause
-- wrk's result as one line of JSON, in the words of loadgen/report.c.
-- Times are seconds; wrk knows nothing of single connections.

done = function(summary, latency, requests)
	local e = summary.errors
	local window = summary.duration / 1e6
	io.write(string.format(
	    '{"window_s": %.6f, "requests": %d, "rps": %.3f, "bytes": %d, ' ..
	    '"errors": %d, "not_200": %d, "p50_s": %.6f, "p90_s": %.6f, ' ..
	    '"p99_s": %.6f, "max_s": %.6f}\n',
	    window, summary.requests, summary.requests / window,
	    summary.bytes, e.connect + e.read + e.write + e.timeout, e.status,
	    latency:percentile(50) / 1e6, latency:percentile(90) / 1e6,
	    latency:percentile(99) / 1e6, latency.max / 1e6))
end
