/*-
 * SPDX-License-Identifier: BSD-2-Clause
 */

extern const struct vdp published_vdp;
