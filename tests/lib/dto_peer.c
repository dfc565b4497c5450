// SPDX-License-Identifier: BSD-2-Clause
/* The second process of the tests of data transfer; see the header. */
#include "dto_peer.h"

void far_end_open(struct dt_peer *peer, struct far_end *far, size_t buf_len)
{
	struct dt_listener listener;
	struct far_info info;

	memset(far, 0, sizeof(*far));
	dt_ia_open(&far->ia);
	dt_buf_create(&far->ia, far->ia.pz, &far->buf, buf_len, DAT_MEM_PRIV_ALL_FLAG);
	memset(far->buf.p, RIG_FILL, buf_len);
	dt_ep_create(&far->ia, far->ia.pz, NULL, &far->ep);
	dt_listen(&far->ia, &listener);
	info.qual = listener.qual;
	info.buf = dt_rseg(&far->buf, 0, buf_len);
	dt_peer_send(peer, &info, sizeof(info));
	dt_ok(dat_cr_accept(dt_request(&listener), far->ep.ep, 0, NULL));
	dt_expect_conn(far->ep.conn, far->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_unlisten(&listener);
}

struct far_info far_connect_ep(struct dt_ia *ia, const struct dt_ep *ep, struct dt_peer *peer)
{
	struct far_info info;

	dt_peer_recv(peer, &info, sizeof(info));
	dt_connect(ia, ep->ep, info.qual);
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	return info;
}

struct far_info far_connect(struct rig *rig, struct dt_peer *peer)
{
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	return far_connect_ep(&rig->ia, &rig->a, peer);
}

DAT_RMR_TRIPLET far_seg(const struct far_info *info, size_t offset, size_t len)
{
	DAT_RMR_TRIPLET seg = info->buf;

	seg.target_address += offset;
	seg.segment_length = len;
	return seg;
}

DT_UNORDERED void far_spin(const unsigned char *byte, unsigned char value)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;

	for (unsigned i = 0; __atomic_load_n(byte, __ATOMIC_ACQUIRE) != value; i++) {
		if (i % 256)
			continue;
		if (dt_now_us() > end) {
			print_error("byte is 0x%02x, 0x%02x did not arrive\n", *byte, value);
			fail();
		}
		sched_yield(); /* there may be fewer processors than threads that spin */
	}
}

DT_UNORDERED void far_check(const unsigned char *bytes, size_t len, unsigned char value)
{
	for (size_t i = 0; i < len; i++) {
		if (__atomic_load_n(bytes + i, __ATOMIC_RELAXED) == value)
			continue;
		print_error("byte %zu of %zu is not 0x%02x\n", i, len, value);
		fail();
	}
}

void far_order(struct far_end *far)
{
	if (DT_SLOW)
		dt_ep_state(far->ep.ep);
}
