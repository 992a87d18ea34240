from hopplus.share.exports import Exported as Exported
from hopplus.share.exports import export as export
from hopplus.share.exports import read_export as read_export
from hopplus.share.page import share as share
from hopplus.share.weights import read_safetensors as read_safetensors
from hopplus.share.weights import write_safetensors as write_safetensors
