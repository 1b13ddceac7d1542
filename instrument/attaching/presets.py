"""Functions of known engines that are worth a range, for ``attach --preset``.

A name of the form ``load layer N`` is the contract with the analysis (``naming.py``) and is given only where the number
is sure to be the layer's own; every other range describes what happens, and the analysis finds layers by the events.
Each preset names the release that its names were taken from; a test compares them with that release's source.
"""

from __future__ import annotations

from dataclasses import dataclass

from instrument.attaching.wrap_spec import Wrap, parse_wrap


@dataclass(frozen=True)
class Preset:
    """The wraps for one engine, and the package and release that they fit."""

    package: str
    release: str
    about: str
    specs: tuple[str, ...]

    def wraps(self) -> tuple[Wrap, ...]:
        """Return the wraps, parsed."""
        return tuple(parse_wrap(spec) for spec in self.specs)


_POOLS = "sglang.srt.mem_cache.pool_host"
_LOAD = "load_to_device_per_layer"

# Pools of keys and values take the number of the model's layer. What else a layer has (index keys, states of linear
# attention) is numbered by its own pool, and the page envelope moves every layer at once.
_SGLANG_POOLS = (
    f"{_POOLS}.mha:MHATokenToKVPoolHost.{_LOAD}=load layer {{layer_id}}",
    f"{_POOLS}.mha:HiSparseMHATokenToKVPoolHost.{_LOAD}=load layer {{layer_id}}",
    f"{_POOLS}.mha:AsymmetricMHATokenToKVPoolHost.{_LOAD}=load layer {{layer_id}}",
    f"{_POOLS}.mha_mxfp8:MHATokenToKVPoolMXFP8Host.{_LOAD}=load layer {{layer_id}}",
    f"{_POOLS}.mla:MLATokenToKVPoolHost.{_LOAD}=load layer {{layer_id}}",
    f"{_POOLS}.mha:MHATokenToKOnlyPoolHost.{_LOAD}=hicache load keys {{layer_id}}",
    f"{_POOLS}.dsa:DSAIndexerPoolHost.{_LOAD}=hicache load index {{layer_id}}",
    f"{_POOLS}.mamba:MambaPoolHost.{_LOAD}=hicache load state {{layer_id}}",
    f"{_POOLS}.minimax_m3_nvfp4:MiniMaxM3Nvfp4IndexKPoolHost.{_LOAD}=hicache load index {{layer_id}}",
    f"{_POOLS}.unified:UnifiedPageEnvelopeHostPool.{_LOAD}=hicache load every layer",
)

PRESETS = {
    "sglang-hicache": Preset(
        package="sglang",
        release="0.5.23",
        about="SGLang's HiCache: loads per layer, submissions, waits for a layer, write-back",
        specs=(
            *_SGLANG_POOLS,
            "sglang.srt.managers.cache_controller:HiCacheController.start_loading=hicache start loading",
            "sglang.srt.managers.cache_controller:HiCacheController.start_writing=hicache start writing",
            "sglang.srt.managers.cache_controller:LayerDoneCounter.wait_until=hicache wait layer {threshold}",
            "sglang.srt.managers.cache_controller:LayerLoadingEvent.complete=hicache record layer {layer_index}",
            "sglang.srt.mem_cache.l2_transfer:L2TransferEngine.submit_host_to_device=hicache submit host to device",
            "sglang.srt.mem_cache.l2_transfer:L2TransferEngine.submit_device_to_host=hicache submit device to host",
        ),
    ),
    "accelerate-offload": Preset(
        package="accelerate",
        release="1.15.0",
        about="Accelerate's CPU and disk offload: weights moved to the device before each module's forward",
        specs=(
            # weights_map.prefix is the module's dotted name, such as "model.layers.3.mlp.up_proj."
            "accelerate.hooks:AlignDevicesHook.pre_forward=load layer {self.weights_map.prefix:number}",
            "accelerate.hooks:AlignDevicesHook.post_forward=offload release {module}",
            "accelerate.hooks:CpuOffload.pre_forward=offload move {module} to device",
            "accelerate.hooks:UserCpuOffloadHook.offload=offload move model to host",
            "accelerate.utils.offload:OffloadedWeightsLoader.__getitem__=offload fetch {key}",
        ),
    ),
    "transformers-offloaded-cache": Preset(
        package="transformers",
        release="5.24.0",
        about="Transformers' offloaded KV cache: prefetch of the next layer, offload of the current one",
        specs=(
            # prefetch looks for the next offloaded layer at or after the number, and starts over behind the last
            "transformers.cache_utils:Cache.prefetch=cache prefetch from layer {layer_idx}",
            "transformers.cache_utils:Cache.offload=cache offload layer {layer_idx}",
            "transformers.cache_utils:Cache.update=cache update layer {layer_idx}",
        ),
    ),
}
"""The presets by the name that ``--preset`` takes."""
