// SPDX-License-Identifier: BSD-2-Clause
/*
 * The server of dat_ping. It serves one client after another until it is stopped. It checks every
 * size and count from a client against the client's hello.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common.h"
#include "ping.h"

struct ping_server {
	const struct ping_options *options;
	struct ping_peer peer;
	uint64_t size_max;
	uint64_t served;
};

/* Reads and checks the hello. -EPROTO: invalid, a message was printed; the caller rejects it. */
static int ping_server_hello(struct ping_server *server, const struct session_private *data)
{
	struct ping_hello hello;

	memset(&hello, 0, sizeof(hello));
	if (data->len >= sizeof(hello))
		memcpy(&hello, data->data, sizeof(hello));
	if (be32toh(hello.magic) != PING_MAGIC || be32toh(hello.version) != PING_VERSION) {
		tool_complain("rejected a client that is not dat_ping version %u", PING_VERSION);
		return -EPROTO;
	}
	server->size_max = be64toh(hello.size_max);
	server->peer.nonce = be64toh(hello.nonce);
	if (server->size_max == 0 || server->size_max > PING_SIZE_LIMIT) {
		tool_complain("rejected a client that requests %" PRIu64 " bytes",
			      server->size_max);
		return -EPROTO;
	}
	return 0;
}

static int ping_server_answer(struct ping_server *server, uint32_t wrong)
{
	struct ping_control answer = {.type = PING_ANSWER, .count = wrong};

	return ping_control_send(&server->peer, &answer);
}

static void ping_server_mismatch(const struct ping_transfer *transfer, int64_t offset)
{
	tool_complain("MISMATCH %s of %" PRIu64 " bytes, transfer %" PRIu64 ": byte %" PRId64,
		      ping_op_names[transfer->op], transfer->size, transfer->index, offset);
}

/* Sends back one message of the same size, then verifies the received one. */
static int ping_server_echo(struct ping_server *server, struct ping_transfer *transfer,
			    uint32_t *wrong)
{
	struct ping_peer *peer = &server->peer;
	unsigned char *data;
	uint64_t cookie;
	int64_t offset;
	size_t len;
	int rc;

	transfer->is_reply = true;
	ping_fill(peer->out.data, transfer);
	transfer->is_reply = false;
	rc = ping_peer_receive(peer, &cookie, &data, &len);
	if (rc == 0)
		rc = session_post_send(&peer->out, 0, transfer->size, peer->endpoint);
	if (rc == 0)
		rc = session_complete(&peer->session, peer->session.request_evd, NULL, NULL);
	if (rc != 0)
		return rc;
	offset = len == transfer->size ? ping_verify(data, transfer) : (int64_t)len;
	if (offset >= 0) {
		ping_server_mismatch(transfer, offset);
		++*wrong;
	}
	ping_guard(data, transfer->size);
	return ping_peer_repost(peer, cookie);
}

static int ping_server_sends(struct ping_server *server, const struct ping_control *begin)
{
	struct ping_peer *peer = &server->peer;
	struct ping_transfer transfer = {
		.op = PING_SEND, .nonce = peer->nonce, .size = begin->size};
	struct ping_control control;
	uint32_t wrong = 0;
	int rc;

	for (unsigned slot = 0; slot < 2; slot++)
		ping_guard(peer->message.data + slot * (peer->message_size + PING_GUARD),
			   begin->size);
	rc = ping_server_answer(server, 0);
	for (; rc == 0 && transfer.index < begin->count; transfer.index++)
		rc = ping_server_echo(server, &transfer, &wrong);
	if (rc == 0)
		rc = ping_control_receive(peer, PING_END, &control);
	if (rc == 0)
		rc = ping_server_answer(server, wrong);
	return rc;
}

/* Fills the buffer before a read, or verifies it after a write. */
static int ping_server_rdma(struct ping_server *server, const struct ping_control *begin)
{
	struct ping_peer *peer = &server->peer;
	struct ping_transfer transfer = {
		.op = (enum ping_op)begin->op, .nonce = peer->nonce, .size = begin->size};
	struct ping_control control;
	uint32_t wrong = 0;
	int64_t offset;
	int rc;

	ping_guard(peer->target.data, begin->size);
	rc = ping_server_answer(server, 0);
	while (rc == 0) {
		rc = ping_control_receive(peer, 0, &control);
		if (rc != 0)
			return rc;
		if (control.type == PING_END)
			return ping_server_answer(server, wrong);
		transfer.index = control.index;
		if (transfer.op == PING_READ) {
			ping_fill(peer->target.data, &transfer);
		} else {
			offset = ping_verify(peer->target.data, &transfer);
			if (offset >= 0) {
				ping_server_mismatch(&transfer, offset);
				wrong++;
			}
			ping_guard(peer->target.data, begin->size);
		}
		rc = ping_server_answer(server, wrong);
	}
	return rc;
}

/* Serves requests until the client disconnects, which flushes a Receive. */
static int ping_server_phases(struct ping_server *server)
{
	struct ping_control begin;
	int rc;

	for (;;) {
		rc = ping_control_receive(&server->peer, PING_BEGIN, &begin);
		if (rc == -ENOTCONN)
			return 0;
		if (rc != 0)
			return rc;
		if (begin.op >= PING_OPS || begin.size == 0 || begin.size > server->size_max ||
		    begin.count > PING_COUNT_LIMIT) {
			tool_complain("the client sent an invalid control message");
			return -EPROTO;
		}
		rc = begin.op == PING_SEND ? ping_server_sends(server, &begin)
					   : ping_server_rdma(server, &begin);
		if (rc == -ENOTCONN)
			tool_complain("the client disconnected during a test");
		if (rc != 0)
			return rc;
	}
}

/* Serves one connection from its request to its end. */
static int ping_server_serve(struct ping_server *server, DAT_CR_HANDLE request)
{
	struct ping_peer *peer = &server->peer;
	struct ping_welcome welcome;
	int rc = session_endpoint_create(&peer->session, &peer->endpoint);

	if (rc == 0)
		rc = ping_peer_prepare(peer, server->size_max, true);
	if (rc != 0) {
		dat_cr_reject(request);
		goto out;
	}
	welcome = (struct ping_welcome){
		.magic = htobe32(PING_MAGIC),
		.version = htobe32(PING_VERSION),
		.address = htobe64((uintptr_t)peer->target.data),
		.size = htobe64(server->size_max),
		.rmr_context = htobe32(peer->target.rmr_context),
	};
	rc = session_accept(&peer->session, request, peer->endpoint, &welcome, sizeof(welcome));
	if (rc != 0)
		goto out;
	rc = ping_server_phases(server);
	if (rc != 0)
		dat_ep_disconnect(peer->endpoint, DAT_CLOSE_ABRUPT_FLAG);
	session_disconnect(&peer->session, peer->endpoint, false);
	server->served++;
out:
	ping_peer_release(peer);
	return rc;
}

int ping_server_run(const struct ping_options *options)
{
	struct ping_server server = {.options = options};
	struct session *session = &server.peer.session;
	struct session_private hello;
	DAT_CR_HANDLE request;
	DAT_PSP_HANDLE psp;
	int result = TOOL_EXIT_OK;
	int rc = session_open(session, options->side.adapter, options->is_polling,
			      options->side.timeout_ms);

	if (rc != 0)
		return TOOL_EXIT_FAILED;
	rc = tool_side_listen(&options->side, session, &psp);
	if (rc != 0) {
		session_close(session);
		return TOOL_EXIT_FAILED;
	}
	while (!tool_is_stopped && (!options->side.is_once || server.served == 0)) {
		rc = tool_side_accept(&options->side, session, server.served, &request, &hello);
		if (rc != 0)
			break;
		if (ping_server_hello(&server, &hello) != 0) {
			dat_cr_reject(request);
			continue;
		}
		rc = ping_server_serve(&server, request);
		/* a failed client does not end the server, but is the result of --once */
		if (rc != 0 && rc != -EINTR && options->side.is_once)
			result = TOOL_EXIT_FAILED;
	}
	if (rc == -EIO || (rc == -ENODATA && server.served == 0))
		result = TOOL_EXIT_FAILED;
	dat_psp_free(psp);
	session_close(session);
	tool_side_end(&options->side);
	return result;
}
