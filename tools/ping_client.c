// SPDX-License-Identifier: BSD-2-Clause
/*
 * The client of dat_ping: runs the operations and sizes in order, measures, and prints the table.
 * Only the transfer itself is timed; patterns are filled and verified outside the measured time.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "ping.h"
#include "stats.h"

#define PING_COUNT_MAX 1000u
#define PING_COUNT_MIN 20u
#define PING_COUNT_BYTES (UINT64_C(64) << 20) /* bytes per size by default */

struct ping_client {
	const struct ping_options *options;
	struct ping_peer peer;
	DAT_RMR_TRIPLET remote; /* the server's target buffer */
	struct stats stats;	/* ns, of one operation and size */
	uint64_t mismatches;
	bool has_printed; /* JSON: the next object needs a comma */
};

static int ping_client_welcome(struct ping_client *client, const struct session_private *answer)
{
	struct ping_welcome welcome;

	memset(&welcome, 0, sizeof(welcome));
	/* a transport may pad private data */
	if (answer->len >= sizeof(welcome))
		memcpy(&welcome, answer->data, sizeof(welcome));
	if (be32toh(welcome.magic) != PING_MAGIC) {
		tool_complain("the peer is not a dat_ping server");
		return -EPROTO;
	}
	if (be32toh(welcome.version) != PING_VERSION) {
		tool_complain("the server has protocol version %u, this program has version %u",
			      be32toh(welcome.version), PING_VERSION);
		return -EPROTO;
	}
	if (be64toh(welcome.size) < client->options->size_max) {
		tool_complain("the server's buffer is too small");
		return -EPROTO;
	}
	client->remote = (DAT_RMR_TRIPLET){.rmr_context = be32toh(welcome.rmr_context),
					   .target_address = be64toh(welcome.address)};
	return 0;
}

static int ping_client_connect(struct ping_client *client)
{
	const struct ping_options *options = client->options;
	struct session *session = &client->peer.session;
	struct sockaddr_storage address = session->address;
	struct session_private answer;
	struct ping_hello hello;
	int rc;

	if (options->side.host) {
		rc = tool_resolve(options->side.host, &address);
		if (rc != 0)
			return rc;
	}
	client->peer.nonce = tool_now_ns();
	hello = (struct ping_hello){.magic = htobe32(PING_MAGIC),
				    .version = htobe32(PING_VERSION),
				    .size_max = htobe64(options->size_max),
				    .nonce = htobe64(client->peer.nonce)};
	rc = session_endpoint_create(session, &client->peer.endpoint);
	if (rc != 0)
		return rc;
	rc = ping_peer_prepare(&client->peer, options->size_max, false);
	if (rc != 0)
		return rc;
	rc = session_connect(session, client->peer.endpoint, (struct sockaddr *)&address,
			     options->side.qualifier, &hello, sizeof(hello), &answer);
	if (rc != 0)
		return rc;
	return ping_client_welcome(client, &answer);
}

static void ping_client_mismatch(struct ping_client *client, const struct ping_transfer *transfer,
				 int64_t offset)
{
	client->mismatches++;
	tool_complain("MISMATCH %s of %" PRIu64 " bytes, transfer %" PRIu64 ": byte %" PRId64,
		      ping_op_names[transfer->op], transfer->size, transfer->index, offset);
}

/* One round trip; the time of one way is half of it. */
static int ping_client_send(struct ping_client *client, struct ping_transfer *transfer,
			    uint64_t *time_ns_out)
{
	struct ping_peer *peer = &client->peer;
	uint64_t start, cookie;
	unsigned char *data;
	int64_t offset;
	size_t len;
	int rc;

	ping_fill(peer->out.data, transfer);
	for (unsigned slot = 0; slot < 2; slot++)
		ping_guard(peer->message.data + slot * (peer->message_size + PING_GUARD),
			   transfer->size);
	start = tool_now_ns();
	rc = session_post_send(&peer->out, 0, transfer->size, peer->endpoint);
	if (rc == 0)
		rc = ping_peer_receive(peer, &cookie, &data, &len);
	*time_ns_out = (tool_now_ns() - start) / 2;
	if (rc == 0)
		rc = session_complete(&peer->session, peer->session.request_evd, NULL, NULL);
	if (rc != 0)
		return rc;
	transfer->is_reply = true;
	offset = len == transfer->size ? ping_verify(data, transfer) : (int64_t)len;
	transfer->is_reply = false;
	if (offset >= 0)
		ping_client_mismatch(client, transfer, offset);
	return ping_peer_repost(peer, cookie);
}

/* Makes the server verify (write) or fill (read) its buffer. */
static int ping_client_check(struct ping_client *client, const struct ping_transfer *transfer)
{
	struct ping_control control = {.type = PING_CHECK,
				       .op = transfer->op,
				       .size = transfer->size,
				       .index = transfer->index};
	int rc = ping_control_send(&client->peer, &control);

	if (rc != 0)
		return rc;
	return ping_control_receive(&client->peer, PING_ANSWER, &control);
}

static int ping_client_rdma(struct ping_client *client, struct ping_transfer *transfer,
			    uint64_t *time_ns_out)
{
	struct ping_peer *peer = &client->peer;
	bool is_read = transfer->op == PING_READ;
	uint64_t start;
	int64_t offset;
	size_t len;
	int rc = 0;

	client->remote.segment_length = transfer->size;
	if (is_read) {
		ping_guard(peer->out.data, transfer->size);
		rc = ping_client_check(client, transfer);
	} else {
		ping_fill(peer->out.data, transfer);
	}
	if (rc != 0)
		return rc;
	start = tool_now_ns();
	rc = session_post_rdma(&peer->out, transfer->size, peer->endpoint, &client->remote,
			       is_read);
	if (rc == 0)
		rc = session_complete(&peer->session, peer->session.request_evd, NULL, &len);
	*time_ns_out = tool_now_ns() - start;
	if (rc != 0)
		return rc;
	if (!is_read)
		return ping_client_check(client, transfer);
	offset = len == transfer->size ? ping_verify(peer->out.data, transfer) : (int64_t)len;
	if (offset >= 0)
		ping_client_mismatch(client, transfer, offset);
	return 0;
}

static double ping_percentile_us(const struct stats *stats, unsigned permille)
{
	return (double)stats_percentile(stats, permille) / 1000.0;
}

static void ping_client_print_head(struct ping_client *client)
{
	const struct ping_options *options = client->options;
	const char *path = session_path_text(&client->peer.session, client->peer.endpoint);
	char text[64];

	tool_address_text((struct sockaddr *)&client->peer.session.address, text, sizeof(text));
	if (options->is_json) {
		printf("{\"adapter\": ");
		tool_json_string(stdout, options->side.adapter);
		printf(", \"address\": \"%s\", \"path\": \"%s\", \"qualifier\": %" PRIu64
		       ", \"mode\": \"%s\", \"unit\": \"us\", \"results\": [",
		       text, path, options->side.qualifier, options->is_polling ? "poll" : "wait");
		fflush(stdout);
		return;
	}
	printf("adapter %s, address %s, path %s, %s; times in us; send: half of the round trip\n",
	       options->side.adapter, text, path,
	       options->is_polling ? "polling" : "waiting in dat_evd_wait");
	printf("%-5s %9s %7s %10s %10s %10s %10s %10s %10s %10s\n", "op", "bytes", "count", "min",
	       "avg", "p50", "p99", "p99.9", "max", "MB/s");
	fflush(stdout);
}

static void ping_client_print(struct ping_client *client, const struct ping_transfer *transfer,
			      uint64_t wrong)
{
	const struct stats *stats = &client->stats;
	double avg = stats_average(stats) / 1000.0;
	double min = (double)stats->min / 1000.0;
	double max = (double)stats->max / 1000.0;

	if (client->options->is_json) {
		printf("%s\n  {\"op\": \"%s\", \"bytes\": %" PRIu64 ", \"count\": %" PRIu64
		       ", \"min\": %.3f, \"avg\": %.3f, \"p50\": %.3f, \"p99\": %.3f, "
		       "\"p99_9\": %.3f, \"max\": %.3f, \"mb_per_s\": %.3f, \"wrong\": %" PRIu64
		       "}",
		       client->has_printed ? "," : "", ping_op_names[transfer->op], transfer->size,
		       stats->count, min, avg, ping_percentile_us(stats, 500),
		       ping_percentile_us(stats, 990), ping_percentile_us(stats, 999), max,
		       (double)transfer->size / avg, wrong);
	} else {
		printf("%-5s %9" PRIu64 " %7" PRIu64
		       " %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.1f%s\n",
		       ping_op_names[transfer->op], transfer->size, stats->count, min, avg,
		       ping_percentile_us(stats, 500), ping_percentile_us(stats, 990),
		       ping_percentile_us(stats, 999), max, (double)transfer->size / avg,
		       wrong ? "  WRONG DATA" : "");
	}
	client->has_printed = true;
	fflush(stdout);
}

static int ping_client_phase(struct ping_client *client, enum ping_op op, uint64_t size)
{
	struct ping_transfer transfer = {.op = op, .nonce = client->peer.nonce, .size = size};
	struct ping_control control = {.type = PING_BEGIN, .op = op, .size = size};
	uint64_t before = client->mismatches;
	uint64_t count = client->options->count;
	int rc;

	if (count == 0) {
		count = PING_COUNT_BYTES / size;
		count = count > PING_COUNT_MAX ? PING_COUNT_MAX : count;
		count = count < PING_COUNT_MIN ? PING_COUNT_MIN : count;
	}
	stats_reset(&client->stats);
	control.count = (uint32_t)count;
	rc = ping_control_send(&client->peer, &control);
	if (rc == 0)
		rc = ping_control_receive(&client->peer, PING_ANSWER, &control);
	for (; rc == 0 && transfer.index < count; transfer.index++) {
		uint64_t time_ns = 0;

		if (op == PING_SEND)
			rc = ping_client_send(client, &transfer, &time_ns);
		else
			rc = ping_client_rdma(client, &transfer, &time_ns);
		stats_add(&client->stats, time_ns);
	}
	control.type = PING_END;
	if (rc == 0)
		rc = ping_control_send(&client->peer, &control);
	if (rc == 0)
		rc = ping_control_receive(&client->peer, PING_ANSWER, &control);
	if (rc == 0) {
		client->mismatches += control.count;
		ping_client_print(client, &transfer, client->mismatches - before);
	}
	return rc;
}

static int ping_client_phases(struct ping_client *client)
{
	const struct ping_options *options = client->options;
	int rc = 0;

	for (int op = 0; op < PING_OPS && rc == 0; op++) {
		uint64_t size = options->size_min;

		if (!options->is_op[op])
			continue;
		for (;;) {
			rc = ping_client_phase(client, (enum ping_op)op, size);
			if (rc != 0 || size == options->size_max)
				break;
			/* powers of four, and always the largest size */
			size = size > options->size_max / 4 ? options->size_max : size * 4;
		}
	}
	return rc;
}

int ping_client_run(const struct ping_options *options)
{
	struct ping_client client = {.options = options};
	struct session *session = &client.peer.session;
	int rc = session_open(session, options->side.adapter, options->is_polling,
			      options->side.timeout_ms);

	if (rc != 0)
		return TOOL_EXIT_FAILED;
	rc = ping_client_connect(&client);
	if (rc == 0) {
		ping_client_print_head(&client);
		rc = ping_client_phases(&client);
		if (options->is_json)
			printf("\n], \"wrong\": %" PRIu64 ", \"is_complete\": %s}\n",
			       client.mismatches, rc == 0 ? "true" : "false");
		if (rc == 0)
			rc = session_disconnect(session, client.peer.endpoint, true);
		else
			dat_ep_disconnect(client.peer.endpoint, DAT_CLOSE_ABRUPT_FLAG);
		if (rc == -ENOTCONN)
			tool_complain("the server ended the connection");
	}
	ping_peer_release(&client.peer);
	session_close(session);
	if (rc == -EINTR) {
		tool_complain("stopped");
		return TOOL_EXIT_STOPPED;
	}
	if (rc != 0)
		return TOOL_EXIT_FAILED;
	if (client.mismatches > 0)
		return TOOL_EXIT_MISMATCH;
	if (!options->is_json)
		printf("every byte of every transfer verified\n");
	return TOOL_EXIT_OK;
}
