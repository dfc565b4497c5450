// SPDX-License-Identifier: BSD-2-Clause
/* The data of dat_ping: patterns, control messages and Receives; see ping.h. */
#include "ping.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "common.h"

#define PING_GUARD_BYTE 0xa5

const char *const ping_op_names[PING_OPS] = {
	[PING_SEND] = "send", [PING_WRITE] = "write", [PING_READ] = "read"};

/* splitmix64: neighbouring inputs give unrelated words */
static uint64_t ping_mix(uint64_t word)
{
	word += UINT64_C(0x9e3779b97f4a7c15);
	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static uint64_t ping_seed(const struct ping_transfer *transfer)
{
	uint64_t seed = ping_mix(transfer->nonce);

	seed = ping_mix(seed ^ transfer->size);
	seed = ping_mix(seed ^ transfer->index);
	return ping_mix(seed ^ ((uint64_t)transfer->op * 2 + transfer->is_reply));
}

void ping_fill(unsigned char *data, const struct ping_transfer *transfer)
{
	uint64_t seed = ping_seed(transfer);
	uint64_t size = transfer->size;
	uint64_t word;
	uint64_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		word = ping_mix(seed + i);
		memcpy(data + i, &word, 8);
	}
	word = ping_mix(seed + i);
	memcpy(data + i, &word, size - i);
}

void ping_guard(unsigned char *data, uint64_t size)
{
	memset(data + size, PING_GUARD_BYTE, PING_GUARD);
}

int64_t ping_verify(const unsigned char *data, const struct ping_transfer *transfer)
{
	uint64_t seed = ping_seed(transfer);
	uint64_t size = transfer->size;
	uint64_t word;
	uint64_t i;

	for (i = 0; i < size; i += 8) {
		uint64_t len = size - i < 8 ? size - i : 8;

		word = ping_mix(seed + i);
		if (memcmp(data + i, &word, len) != 0)
			break;
	}
	if (i >= size) {
		for (i = size; i < size + PING_GUARD; i++) {
			if (data[i] != PING_GUARD_BYTE)
				return (int64_t)i;
		}
		return -1;
	}
	for (uint64_t k = 0; k < 8 && i + k < size; k++) {
		if (data[i + k] != ((const unsigned char *)&word)[k])
			return (int64_t)(i + k);
	}
	return (int64_t)i;
}

int ping_peer_prepare(struct ping_peer *peer, uint64_t size_max, bool is_server)
{
	size_t room = size_max + PING_GUARD;
	int rc;

	peer->message_size =
		size_max > sizeof(struct ping_control) ? size_max : sizeof(struct ping_control);
	rc = session_buffer_create(&peer->session, 2 * (peer->message_size + PING_GUARD),
				   &peer->message);
	if (rc == 0)
		rc = session_buffer_create(&peer->session, sizeof(struct ping_control),
					   &peer->control);
	if (rc == 0)
		rc = session_buffer_create(&peer->session, room, &peer->out);
	if (rc == 0 && is_server)
		rc = session_buffer_create(&peer->session, room, &peer->target);
	if (rc == 0)
		rc = ping_peer_repost(peer, 0);
	if (rc == 0)
		rc = ping_peer_repost(peer, 1);
	return rc;
}

void ping_peer_release(struct ping_peer *peer)
{
	if (peer->endpoint)
		dat_ep_free(peer->endpoint);
	peer->endpoint = DAT_HANDLE_NULL;
	session_buffer_destroy(&peer->message);
	session_buffer_destroy(&peer->control);
	session_buffer_destroy(&peer->out);
	session_buffer_destroy(&peer->target);
}

static size_t ping_peer_slot(const struct ping_peer *peer, uint64_t cookie)
{
	return cookie * (peer->message_size + PING_GUARD);
}

int ping_peer_repost(struct ping_peer *peer, uint64_t cookie)
{
	return session_post_recv(&peer->message, ping_peer_slot(peer, cookie), peer->message_size,
				 peer->endpoint, cookie);
}

int ping_peer_receive(struct ping_peer *peer, uint64_t *cookie_out, unsigned char **data_out,
		      size_t *len_out)
{
	int rc = session_complete(&peer->session, peer->session.recv_evd, cookie_out, len_out);

	if (rc == 0)
		*data_out = peer->message.data + ping_peer_slot(peer, *cookie_out);
	return rc;
}

int ping_control_send(struct ping_peer *peer, const struct ping_control *control)
{
	struct ping_control wire = {
		.magic = htobe32(PING_MAGIC),
		.type = htobe32(control->type),
		.op = htobe32(control->op),
		.count = htobe32(control->count),
		.size = htobe64(control->size),
		.index = htobe64(control->index),
	};
	int rc;

	memcpy(peer->control.data, &wire, sizeof(wire));
	rc = session_post_send(&peer->control, 0, sizeof(wire), peer->endpoint);
	if (rc != 0)
		return rc;
	return session_complete(&peer->session, peer->session.request_evd, NULL, NULL);
}

int ping_control_receive(struct ping_peer *peer, uint32_t type, struct ping_control *control_out)
{
	struct ping_control wire;
	unsigned char *data;
	uint64_t cookie;
	size_t len;
	int rc = ping_peer_receive(peer, &cookie, &data, &len);

	if (rc != 0)
		return rc;
	memset(&wire, 0, sizeof(wire));
	memcpy(&wire, data, len < sizeof(wire) ? len : sizeof(wire));
	rc = ping_peer_repost(peer, cookie);
	if (rc != 0)
		return rc;
	*control_out = (struct ping_control){
		.magic = be32toh(wire.magic),
		.type = be32toh(wire.type),
		.op = be32toh(wire.op),
		.count = be32toh(wire.count),
		.size = be64toh(wire.size),
		.index = be64toh(wire.index),
	};
	if (len != sizeof(wire) || control_out->magic != PING_MAGIC ||
	    (type != 0 && control_out->type != type)) {
		tool_complain("the peer sent an invalid control message");
		return -EPROTO;
	}
	return 0;
}
